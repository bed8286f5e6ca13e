"""On which task should the next training step be spent?"""

from bursar.curriculum.policy import FixedPolicy, Policy

__all__ = ["FixedPolicy", "Policy"]
