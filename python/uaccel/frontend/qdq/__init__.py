"""This package rewrites QDQ (quantise-dequantise) models of ONNX and PyTorch in integer operators.

An *island* is float arithmetic between ``dequantize`` and ``quantize``; ``rewrite`` says how islands become integers.
"""
