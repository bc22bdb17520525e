"""Quantised models of ONNX and PyTorch, rewritten in integer operators."""
