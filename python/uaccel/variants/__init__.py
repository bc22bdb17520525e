"""Kernels for what some CPUs have and others lack: a module a family, each kernel exact or not offered."""

from uaccel.variants import dsp, dsp_add
from uaccel.variants.registry import candidates, offers
from uaccel.variants.target import PORTABLE, Target

__all__ = ["PORTABLE", "Target", "candidates", "dsp", "dsp_add", "offers"]
