"""One page a run: what the money bought, in figures and in words, in a file that needs no network."""

from bursar.report.page import render, write_report

__all__ = ["render", "write_report"]
