"""Work spread over cores."""

from bursar.compute.processes import Tell, cores, run_all

__all__ = ["Tell", "cores", "run_all"]
