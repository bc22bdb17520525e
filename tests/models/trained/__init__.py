"""Networks trained in PyTorch on synthetic data; `make.py` here writes the files that are committed beside it."""
