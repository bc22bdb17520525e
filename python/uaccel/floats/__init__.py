"""Float layers that the CPU computes, joined: products, bias, normalisation, a sum with another tensor, activation.

What front ends write as three operators or more becomes one with a kernel of its own. It wants images as NHWC.
"""

from uaccel.floats.fuse import Fused, fuse_floats

__all__ = ["Fused", "fuse_floats"]
