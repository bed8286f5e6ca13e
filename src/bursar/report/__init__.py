"""Reports: one HTML file a run, in figures and in words, that needs no network."""

from bursar.report.page import render, write_report

__all__ = ["render", "write_report"]
