"""What a study may say of its scores: tests, win percentages, areas, savings. Arrays in, numbers for JSON out."""

from bursar.comparison.paired import holm
from experiments.studies.statistics.curves import areas, regret
from experiments.studies.statistics.families import LEVEL, compare_all, spread
from experiments.studies.statistics.permutation import PairedTest, paired_test
from experiments.studies.statistics.savings import saved, saved_interval
from experiments.studies.statistics.tables import agreement_with, table4, wins
from experiments.studies.statistics.trust import r_squared

__all__ = [
    "LEVEL",
    "PairedTest",
    "agreement_with",
    "areas",
    "compare_all",
    "holm",
    "paired_test",
    "r_squared",
    "regret",
    "saved",
    "saved_interval",
    "spread",
    "table4",
    "wins",
]
