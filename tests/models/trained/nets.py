"""The networks in PyTorch, and their training: on one thread, with seeds, by Adam.

The factors of batch normalisation are pulled to zero, half of them by a step that reaches it: so channels die or nearly
die, as those of pruned networks do, and nobody draws such weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from models.trained import signals

Array = NDArray[Any]
Loss = Callable[[Any, Any], Any]


def unit(kind: Any, *sizes: int, act: Any = nn.ReLU6, **options: Any) -> Any:
    """A layer, its batch normalisation, and an activation if there is one."""
    norm = {nn.Linear: nn.BatchNorm1d, nn.Conv1d: nn.BatchNorm1d}.get(kind, nn.BatchNorm2d)
    return nn.Sequential(kind(*sizes, bias=False, **options), norm(sizes[1]), *([act()] if act else []))


class Classifier(nn.Module):  # type: ignore[misc]
    """Which shape a picture shows: depthwise and pointwise convolutions, and a sum around two of them."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.ModuleList(
            [
                unit(nn.Conv2d, 1, 16, kernel_size=3, stride=2, padding=1),
                unit(nn.Conv2d, 16, 16, kernel_size=3, padding=1, groups=16),
                unit(nn.Conv2d, 16, 24, kernel_size=1),
                unit(nn.Conv2d, 24, 24, kernel_size=3, stride=2, padding=1, groups=24),
                unit(nn.Conv2d, 24, 32, kernel_size=1),
                unit(nn.Conv2d, 32, 32, kernel_size=3, padding=1, groups=32),
                unit(nn.Conv2d, 32, 32, kernel_size=1, act=None),
            ]
        )
        self.head = nn.Linear(32, len(signals.SHAPES))

    def forward(self, x: Any) -> Any:
        for layer in self.body[:5]:
            x = layer(x)
        x = x + self.body[6](self.body[5](x))
        return self.head(x.mean((2, 3)))


def autoencoder() -> Any:
    """Long sums: each level of a spectrum goes into each of the first units."""
    sizes = [signals.BINS, 40, 16, 6, 16, 40]
    hidden = [unit(nn.Linear, *pair, act=nn.ReLU) for pair in pairwise(sizes)]
    return nn.Sequential(*hidden, nn.Linear(40, signals.BINS))


class Denoiser(nn.Module):  # type: ignore[misc]
    """A picture without its noise: down, up again by transposed convolutions, joined with what came before."""

    def __init__(self) -> None:
        super().__init__()
        self.first = unit(nn.Conv2d, 1, 12, kernel_size=3, padding=1, act=nn.ReLU)
        self.down = unit(nn.Conv2d, 12, 16, kernel_size=3, stride=2, padding=1, act=nn.ReLU)
        self.deep = unit(nn.Conv2d, 16, 24, kernel_size=3, stride=2, padding=1, act=nn.ReLU)
        self.up = unit(nn.ConvTranspose2d, 24, 16, kernel_size=2, stride=2, act=nn.ReLU)
        self.wide = unit(nn.ConvTranspose2d, 32, 12, kernel_size=2, stride=2, act=nn.ReLU)
        self.last = nn.Conv2d(24, 1, 3, padding=1)

    def forward(self, x: Any) -> Any:
        full = self.first(x)
        half = self.down(full)
        up = self.up(self.deep(half))
        wide = self.wide(torch.cat([half, up], 1))
        return torch.sigmoid(self.last(torch.cat([full, wide], 1)))


class Listener(nn.Module):  # type: ignore[misc]
    """Which word was said: convolutions along time, and one half of the channels opens and closes the other."""

    def __init__(self) -> None:
        super().__init__()
        self.first = unit(nn.Conv1d, signals.FEATURES, 16, kernel_size=3, padding=1, act=nn.ReLU)
        self.gated = unit(nn.Conv1d, 16, 32, kernel_size=3, padding=2, dilation=2, act=None)
        self.out = unit(nn.Conv1d, 16, 16, kernel_size=1, act=None)
        self.head = nn.Linear(16, len(signals.WORDS))

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        value, gate = self.gated(x).chunk(2, 1)
        x = x + self.out(torch.tanh(value) * torch.sigmoid(gate))
        return self.head(x.mean(2))


class Svdf(nn.Module):  # type: ignore[misc]
    """A layer of rank 1 that remembers: a sum over features of each frame, then one over the last frames."""

    def __init__(self, features: int, units: int, memory: int) -> None:
        super().__init__()
        self.features = nn.Linear(features, units, bias=False)
        self.times = nn.Parameter(torch.randn(units, memory) / memory**0.5)
        self.bias = nn.Parameter(torch.zeros(units))

    def forward(self, x: Any) -> Any:
        """[count, frames, features] to [count, frames, units]; before the first frame there was silence."""
        memory = self.times.shape[1]
        sums = functional.pad(self.features(x).transpose(1, 2), (memory - 1, 0))
        return torch.relu(functional.conv1d(sums, self.times[:, None], self.bias, groups=len(self.times))).transpose(
            1, 2
        )


def spotter() -> Any:
    """The word after the last frame, in a network that is given one frame at a time."""
    return nn.Sequential(Svdf(signals.FEATURES, 16, 8), Svdf(16, 12, 10), nn.Linear(12, len(signals.WORDS)))


def norms(net: Any) -> Iterator[Any]:
    yield from (part for part in net.modules() if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)))


def fit(net: Any, x: Array, truth: Array, loss: Loss, *, epochs: int, pull: float, rate: float = 0.01) -> Any:
    """Train it, and return it in eval mode; ``pull``: by how much the factors of batch normalisation shrink."""
    generator = torch.Generator().manual_seed(1)
    inputs, wanted = torch.from_numpy(np.ascontiguousarray(x)), torch.from_numpy(np.ascontiguousarray(truth))
    optimiser = torch.optim.Adam(net.parameters(), rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, epochs * (len(x) // 64))
    for _ in range(epochs):
        for batch in torch.randperm(len(x), generator=generator).split(64)[: len(x) // 64]:
            optimiser.zero_grad()
            loss(net(inputs[batch]), wanted[batch]).backward()
            optimiser.step()
            schedule.step()
            _shrink(net, pull * schedule.get_last_lr()[0])
    return net.eval()


def _shrink(net: Any, step: float) -> None:
    """Of odd layers to exactly zero, of even ones by a share."""
    with torch.no_grad():
        for number, norm in enumerate(norms(net)):
            size = norm.weight.abs()
            smaller = (size - step).clamp(min=0) if number % 2 else size * (1 - 20 * step * (size < 0.2))
            norm.weight.copy_(norm.weight.sign() * smaller)


def folded(layer: Sequence[Any]) -> tuple[Any, Any]:
    """Weights and bias of a layer with its batch normalisation in them."""
    first, norm = layer[0], layer[1]
    weights, bias = nn.utils.fuse_conv_bn_weights(
        *(first.weight, first.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias),
        **({"transpose": True} if isinstance(first, nn.ConvTranspose2d) else {}),
    )
    return weights.detach().double().numpy(), bias.detach().double().numpy()
