"""A float model to a quantised one, by ONNX Runtime's quantiser or PyTorch's; ours is the looking after."""
