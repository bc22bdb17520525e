"""Parts that many architectures have in common, in few lines each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.models.exported import Net, torch

nn = torch.nn
seq = nn.Sequential
Module = Any


def conv(inputs: int, outputs: int, kernel: int = 3, act: Any = nn.ReLU, **options: Any) -> Module:
    """Convolution, normalisation, activation."""
    options = {"padding": kernel // 2 * options.get("dilation", 1), "bias": False} | options
    parts = [nn.Conv2d(inputs, outputs, kernel, **options), nn.BatchNorm2d(outputs)]
    return nn.Sequential(*parts, *([act()] if act else []))


def dw(channels: int, kernel: int = 3, act: Any = nn.ReLU, **options: Any) -> Module:
    return conv(channels, channels, kernel, act, groups=channels, **options)


def head(channels: int, classes: int = 5) -> Module:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def plus(*parts: Module, act: Any = nn.ReLU, short: Module | None = None) -> Module:
    """What the parts give, added to their input or to a shortcut."""
    body, end = nn.Sequential(*parts), act() if act else nn.Identity()
    return Net(lambda x, b, s, e: e(b(x) + s(x)), body, short or nn.Identity(), end)


def cat(*parts: Module) -> Module:
    return Net(lambda x, *given: torch.cat([part(x) for part in given], 1), *parts)


def gate(channels: int, act: Any = nn.ReLU, end: Any = nn.Sigmoid) -> Module:
    """Squeeze and excitation."""
    inner = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, 4, 1), act(), nn.Conv2d(4, channels, 1), end())
    return Net(lambda x, g: x * g(x), inner)


def inverted(
    inputs: int, outputs: int, stride: int = 1, act: Any = nn.ReLU6, se: Any = None, kernel: int = 3
) -> Module:
    wide = 3 * inputs
    parts = [conv(inputs, wide, 1, act), dw(wide, kernel, act, stride=stride), *([se(wide)] if se else [])]
    parts.append(conv(wide, outputs, 1, None))
    return plus(*parts, act=None) if stride == 1 and inputs == outputs else nn.Sequential(*parts)


def of(compute: Callable[..., Any]) -> Module:
    """A function of tensors as a module."""
    return Net(compute)


def channels_last(*parts: Module) -> Module:
    return seq(of(lambda x: x.permute(0, 2, 3, 1)), *parts, of(lambda x: x.permute(0, 3, 1, 2)))


def up(factor: int = 2, mode: str = "nearest") -> Module:
    return nn.Upsample(scale_factor=factor, mode=mode)


def perceptron(width: int, wide: int, act: Any = nn.GELU) -> Module:
    return seq(nn.Linear(width, wide), act(), nn.Linear(wide, width))


def attention(width: int, heads: int = 2) -> Module:
    """Of a sequence to itself, written as its products."""

    def compute(x: Any, inwards: Any, out: Any) -> Any:
        n, length, _ = x.shape
        q, k, v = inwards(x).reshape(n, length, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) * (width // heads) ** -0.5, -1)
        return out((weights @ v).transpose(1, 2).reshape(n, length, width))

    return Net(compute, nn.Linear(width, 3 * width), nn.Linear(width, width))


def transformer(width: int = 16, act: Any = nn.GELU) -> Module:
    """A block, normalised before its parts."""
    first = plus(nn.LayerNorm(width), attention(width), act=None)
    return seq(first, plus(nn.LayerNorm(width), perceptron(width, 2 * width, act), act=None))


def tokens(width: int, patch: int) -> Module:
    """Patches of an image as a sequence."""
    return seq(nn.Conv2d(3, width, patch, patch), nn.Flatten(2), of(lambda x: x.transpose(1, 2)))


def mean_head(width: int, classes: int = 5) -> Module:
    """Of a sequence."""
    return seq(nn.LayerNorm(width), of(lambda x: x.mean(1)), nn.Linear(width, classes))
