"""Classifiers of images whose blocks branch, split or repeat in their own way."""

from __future__ import annotations

from typing import Any

from support.models.architectures.blocks import Module, cat, conv, dw, gate, head, inverted, nn, of, plus, seq, up
from support.models.exported import Net, torch


def alexnet() -> Module:
    features = seq(
        nn.Conv2d(3, 8, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1), nn.Conv2d(8, 12, 3, padding=1), nn.ReLU()
    )
    dense = seq(nn.Dropout(), nn.Linear(108, 16), nn.ReLU(), nn.Dropout(), nn.Linear(16, 5))
    return seq(features, nn.AdaptiveAvgPool2d(3), nn.Flatten(), dense)


def xception() -> Module:
    def separable(inputs: int, outputs: int) -> Module:
        return seq(nn.ReLU(), dw(inputs, act=None), conv(inputs, outputs, 1, None))

    down = plus(
        separable(8, 16), separable(16, 16), nn.MaxPool2d(3, 2, 1), act=None, short=conv(8, 16, 1, None, stride=2)
    )
    return seq(conv(3, 8, stride=2), down, plus(separable(16, 16), separable(16, 16), act=None), nn.ReLU(), head(16))


def leaky() -> Module:
    return nn.LeakyReLU(0.1)


def darknet() -> Module:
    block = plus(conv(16, 8, 1, leaky), conv(8, 16, 3, leaky), act=None)
    return seq(conv(3, 8, 3, leaky), conv(8, 16, 3, leaky, stride=2), block, conv(16, 16, 3, leaky, stride=2), head(16))


def cspnet() -> Module:
    """Half of the channels goes around the blocks."""
    deep = seq(conv(16, 8, 1, nn.Mish), plus(conv(8, 8, 1, nn.Mish), conv(8, 8, 3, nn.Mish), act=None))
    return seq(
        conv(3, 16, 3, nn.Mish, stride=2), cat(deep, conv(16, 8, 1, nn.Mish)), conv(16, 16, 1, nn.Mish), head(16)
    )


def regnet() -> Module:
    def block(inputs: int, outputs: int, stride: int = 1) -> Module:
        short = None if inputs == outputs else conv(inputs, outputs, 1, None, stride=stride)
        body = [conv(inputs, outputs, 1), conv(outputs, outputs, stride=stride, groups=outputs // 4), gate(outputs)]
        return plus(*body, conv(outputs, outputs, 1, None), short=short)

    return seq(conv(3, 8, stride=2), block(8, 12, 2), block(12, 12), head(12))


def mnasnet() -> Module:
    first = seq(conv(3, 8, stride=2), dw(8), conv(8, 8, 1, None))
    return seq(first, inverted(8, 12, 2, nn.ReLU, kernel=5), inverted(12, 12, 1, nn.ReLU), conv(12, 24, 1), head(24))


def ghostnet() -> Module:
    """Half of the channels are made of the other half, depthwise."""

    def ghost(inputs: int, outputs: int, act: Any = nn.ReLU) -> Module:
        return seq(conv(inputs, outputs // 2, 1, act), cat(nn.Identity(), dw(outputs // 2, 3, act)))

    bottleneck = plus(ghost(8, 24), gate(24, end=nn.Hardsigmoid), ghost(24, 8, None), act=None)
    return seq(
        conv(3, 8, stride=2), bottleneck, ghost(8, 24), dw(24, stride=2, act=None), ghost(24, 16, None), head(16)
    )


def repvgg() -> Module:
    """As it is trained: three branches."""

    def block(inputs: int, outputs: int, stride: int = 1) -> Module:
        same = nn.BatchNorm2d(inputs) if inputs == outputs else None
        branches = [conv(inputs, outputs, 3, None, stride=stride), conv(inputs, outputs, 1, None, stride=stride)]
        return Net(
            lambda x, *parts: torch.relu(sum(part(x) for part in parts[1:]) + parts[0](x)),
            *branches,
            *([same] if same else []),
        )

    return seq(block(3, 8, 2), block(8, 8), block(8, 16, 2), block(16, 16), head(16))


def res2net() -> Module:
    """Each part of the channels adds the result of the one before."""

    def compute(x: Any, inwards: Any, out: Any, *convs: Any) -> Any:
        first, *others = inwards(x).chunk(4, 1)
        given = [first]
        for part, each in zip(others, convs, strict=True):
            given.append(each(part if len(given) == 1 else part + given[-1]))
        return torch.relu(x + out(torch.cat(given, 1)))

    block = Net(compute, conv(8, 16, 1), conv(16, 8, 1, None), *(conv(4, 4) for _ in range(3)))
    return seq(conv(3, 8, stride=2), block, head(8))


def cbam() -> Module:
    """Attention to channels by mean and maximum, then to places."""

    def compute(x: Any, dense: Any, where: Any) -> Any:
        x = x * torch.sigmoid(dense(x.mean((2, 3), True)) + dense(x.amax((2, 3), True)))
        both = torch.cat([x.mean(1, True), x.amax(1, True)], 1)
        return x * torch.sigmoid(where(both))

    attend = Net(compute, seq(nn.Conv2d(8, 4, 1), nn.ReLU(), nn.Conv2d(4, 8, 1)), nn.Conv2d(2, 1, 5, padding=2))
    return seq(conv(3, 8, stride=2), plus(conv(8, 8), conv(8, 8, 3, None), attend), head(8))


def hrnet() -> Module:
    """Two resolutions at once, which exchange."""

    def compute(x: Any, fine: Any, down: Any, coarse: Any, rise: Any, fall: Any, end: Any) -> Any:
        one, two = fine(x), coarse(down(x))
        one, two = torch.relu(one + rise(two)), torch.relu(two + fall(one))
        return end(torch.cat([nn.functional.adaptive_avg_pool2d(one, 1), nn.functional.adaptive_avg_pool2d(two, 1)], 1))

    parts = conv(8, 8), conv(8, 12, stride=2), conv(12, 12), seq(conv(12, 8, 1, None), up())
    end = seq(nn.Flatten(), nn.Linear(20, 5))
    return seq(conv(3, 8, stride=2), Net(compute, *parts, conv(8, 12, 3, None, stride=2), end))


def senet_local() -> Module:
    """Channels gated by a convolution along them."""
    along = seq(of(lambda m: m.transpose(1, 2)), nn.Conv1d(1, 1, 3, padding=1, bias=False), nn.Sigmoid())
    gated = Net(lambda x, g: x * g(x.mean((2, 3)).unsqueeze(2)).transpose(1, 2).unsqueeze(3), along)
    return seq(conv(3, 8, stride=2), plus(conv(8, 8), conv(8, 8, 3, None), gated), head(8))


def nfnet() -> Module:
    """Residuals scaled by constants, and no normalisation."""

    def compute(x: Any, body: Any) -> Any:
        return x + 0.2 * body(nn.functional.gelu(x) * 1.7 / 1.1)

    body = seq(nn.Conv2d(8, 8, 3, padding=1), nn.GELU(), nn.Conv2d(8, 8, 1), gate(8))
    return seq(nn.Conv2d(3, 8, 3, 2, 1), Net(compute, body), nn.GELU(), head(8))
