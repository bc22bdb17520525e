"""Quantises float models with ONNX Runtime or PyTorch, and measures how far the result is from the float model."""
