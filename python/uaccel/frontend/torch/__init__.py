"""The front end for PyTorch."""
