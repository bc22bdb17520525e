"""Whole plans of who computes what, each partitioned and lowered, and the one that is estimated to take least."""

from uaccel.plans.estimate import Estimate, Estimator, Off, far_off
from uaccel.plans.search import Plan, Plans, cheapest, kept_on_cpu

__all__ = ["Estimate", "Estimator", "Off", "Plan", "Plans", "cheapest", "far_off", "kept_on_cpu"]
