"""Compare strategies on a labelled corpus over several seeds, before money is spent."""

from bursar.comparison.runner import simulate
from bursar.comparison.simulation import Simulation

__all__ = ["Simulation", "simulate"]
