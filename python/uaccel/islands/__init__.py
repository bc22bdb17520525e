"""Float models with quantisation steps, as ONNX and PyTorch say them, to integer operators."""

from uaccel.islands.rewrite import integers

__all__ = ["integers"]
