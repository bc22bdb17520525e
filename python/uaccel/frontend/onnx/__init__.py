"""The front end for ONNX."""
