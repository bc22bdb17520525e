"""Write small.pt2, a PyTorch module as torch.export sees it."""

import torch
from torch import nn


def main() -> None:
    """A convolution, the mean of each channel, and three classes."""
    torch.manual_seed(19)
    layers = (nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    model = nn.Sequential(*layers).eval()  # as it is used, not as it is trained
    torch.export.save(torch.export.export(model, (torch.randn(1, 1, 12, 12),)), "small.pt2")


if __name__ == "__main__":
    main()
