"""Task policies: which task to train at each step, and how to learn such a policy from logs.

>>> make_policy("exp3s", rate=0.01)
Exp3SPolicy(rate=0.01, explore=0.05, reward='prediction-gain', reservoir=1000)
"""

from bursar.curriculum.dynamic import DynamicPolicy, learn_dynamic
from bursar.curriculum.estimators import ESTIMATORS, Estimate, estimate
from bursar.curriculum.exp3s import Exp3SPolicy
from bursar.curriculum.fixed import FixedPolicy, RoundRobinPolicy, SizePolicy, UniformPolicy
from bursar.curriculum.improve import CmaEs, Improvement, improve
from bursar.curriculum.logs import StepLog, read_logs
from bursar.curriculum.policy import POLICIES, Course, Policy, Steering, load_policy, make_policy
from bursar.curriculum.rewards import REWARDS, Reward

__all__ = [
    "ESTIMATORS",
    "POLICIES",
    "REWARDS",
    "CmaEs",
    "Course",
    "DynamicPolicy",
    "Estimate",
    "Exp3SPolicy",
    "FixedPolicy",
    "Improvement",
    "Policy",
    "Reward",
    "RoundRobinPolicy",
    "SizePolicy",
    "Steering",
    "StepLog",
    "UniformPolicy",
    "estimate",
    "improve",
    "learn_dynamic",
    "load_policy",
    "make_policy",
    "read_logs",
]
