"""Transformers, mixers and what took their shape."""

from __future__ import annotations

from typing import Any

from support.models.architectures.blocks import (
    Module,
    attention,
    channels_last,
    conv,
    dw,
    head,
    inverted,
    mean_head,
    nn,
    of,
    perceptron,
    plus,
    seq,
    tokens,
    transformer,
)
from support.models.exported import Net, torch


class Places(nn.Module):  # type: ignore[misc]
    """A class token before the others, and a learnt place added to each."""

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, length + 1, width))

    def forward(self, x: Any) -> Any:
        return torch.cat([self.token, x], 1) + self.places


def vit() -> Module:
    body = seq(tokens(16, 8), Places(9, 16), transformer(), transformer(), nn.LayerNorm(16))
    return seq(body, of(lambda x: x[:, 0]), nn.Linear(16, 5))


def mobilevit() -> Module:
    def unfold(x: Any, before: Any, body: Any, after: Any, both: Any) -> Any:
        n, _, h, w = x.shape
        y = before(x).reshape(n, 16, h // 2, 2, w // 2, 2).permute(0, 3, 5, 2, 4, 1).reshape(4 * n, h * w // 4, 16)
        y = body(y).reshape(n, 2, 2, h // 2, w // 2, 16).permute(0, 5, 3, 1, 4, 2).reshape(n, 16, h, w)
        return both(torch.cat([x, after(y)], 1))

    parts = seq(conv(8, 8, 3, nn.SiLU), nn.Conv2d(8, 16, 1, bias=False)), transformer(16, nn.SiLU)
    block = Net(unfold, *parts, conv(16, 8, 1, nn.SiLU), conv(16, 8, 3, nn.SiLU))
    return seq(conv(3, 8, 3, nn.SiLU, stride=2), inverted(8, 8, 2, nn.SiLU), block, head(8))


def swin() -> Module:
    """Attention in windows of 3 x 3, shifted in the second block."""

    def windows(shift: int) -> Module:
        def compute(x: Any, attend: Any) -> Any:
            n, h, w, c = x.shape
            x = torch.roll(x, (-shift, -shift), (1, 2)) if shift else x
            y = x.reshape(n, h // 3, 3, w // 3, 3, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 9, c)
            y = attend(y).reshape(n, h // 3, w // 3, 3, 3, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
            return torch.roll(y, (shift, shift), (1, 2)) if shift else y

        return Net(compute, attention(16))

    def block(shift: int) -> Module:
        return seq(
            plus(nn.LayerNorm(16), windows(shift), act=None), plus(nn.LayerNorm(16), perceptron(16, 32), act=None)
        )

    merge = of(lambda x: torch.cat([x[:, i::2, j::2] for j in (0, 1) for i in (0, 1)], -1))
    body = [nn.Conv2d(3, 16, 4, 4), of(lambda x: x.permute(0, 2, 3, 1)), block(0), block(1), merge]
    return seq(*body, nn.LayerNorm(64), nn.Linear(64, 16, bias=False), nn.Flatten(1, 2), mean_head(16))


def mixer() -> Module:
    across = [of(lambda x: x.transpose(1, 2)), perceptron(9, 12), of(lambda x: x.transpose(1, 2))]
    mix = plus(nn.LayerNorm(16), *across, act=None)
    return seq(tokens(16, 8), mix, plus(nn.LayerNorm(16), perceptron(16, 32), act=None), mean_head(16))


def poolformer() -> Module:
    pool = Net(lambda x, p: p(x) - x, nn.AvgPool2d(3, 1, 1, count_include_pad=False))
    dense = seq(nn.Conv2d(8, 16, 1), nn.GELU(), nn.Conv2d(16, 8, 1))
    mix, wide = plus(nn.GroupNorm(1, 8), pool, act=None), plus(nn.GroupNorm(1, 8), dense, act=None)
    return seq(nn.Conv2d(3, 8, 7, 4, 2), mix, wide, nn.GroupNorm(1, 8), head(8))


def convnext() -> Module:
    def block(width: int) -> Module:
        last = channels_last(nn.LayerNorm(width), perceptron(width, 2 * width))
        return plus(nn.Conv2d(width, width, 7, padding=3, groups=width), last, act=None)

    down = seq(channels_last(nn.LayerNorm(8)), nn.Conv2d(8, 12, 2, 2))
    end = seq(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(12), nn.Linear(12, 5))
    return seq(nn.Conv2d(3, 8, 4, 4), channels_last(nn.LayerNorm(8)), block(8), down, block(12), end)


def convmixer() -> Module:
    block = seq(plus(dw(8, 5, nn.GELU), act=None), conv(8, 8, 1, nn.GELU))
    return seq(conv(3, 8, 4, nn.GELU, stride=4, padding=0), block, head(8))


def efficientformer() -> Module:
    """Convolutions where the image is large, attention where it is small."""
    early = plus(dw(12, 3, nn.GELU), conv(12, 24, 1, nn.GELU), conv(24, 12, 1, None), act=None)
    first = seq(conv(3, 12, 3, nn.Hardswish, stride=2), conv(12, 12, 3, nn.Hardswish, stride=2), early)
    return seq(first, nn.Flatten(2), of(lambda x: x.transpose(1, 2)), transformer(12, nn.ReLU), mean_head(12))


def encoder() -> Module:
    """Of words that are embedded already; normalised behind its parts, as the first transformers were."""
    parts = [plus(attention(16), act=None), nn.LayerNorm(16), plus(perceptron(16, 32, nn.ReLU), act=None)]
    return seq(*parts, nn.LayerNorm(16), nn.Linear(16, 8))


def conformer() -> Module:
    """Attention and a gated depthwise convolution between two halves of a perceptron."""

    def half() -> Module:
        return Net(lambda x, p: x + 0.5 * p(x), seq(nn.LayerNorm(16), perceptron(16, 32, nn.SiLU)))

    middle = [
        nn.Conv1d(16, 32, 1),
        nn.GLU(1),
        nn.Conv1d(16, 16, 5, padding=2, groups=16),
        nn.BatchNorm1d(16),
        nn.SiLU(),
    ]
    turned = seq(of(lambda x: x.transpose(1, 2)), *middle, nn.Conv1d(16, 16, 1), of(lambda x: x.transpose(1, 2)))
    attend = plus(nn.LayerNorm(16), attention(16), act=None)
    return seq(half(), attend, plus(nn.LayerNorm(16), turned, act=None), half(), mean_head(16))
