"""Networks of gates, of norms without factors, and of statistics."""

from __future__ import annotations

from typing import Any

from support.models.architectures.blocks import (
    Module,
    cat,
    channels_last,
    conv,
    dw,
    gate,
    head,
    inverted,
    mean_head,
    nn,
    of,
    plus,
    seq,
    tokens,
    transformer,
)
from support.models.exported import Net, torch


def mobileone() -> Module:
    """Branches that were not folded into one."""

    def block(channels: int, kernel: int, groups: int) -> Module:
        several = [conv(channels, channels, kernel, None, groups=groups) for _ in range(2)]
        parts = [*several, conv(channels, channels, 1, None, groups=groups), nn.BatchNorm2d(channels)]
        return seq(Net(lambda x, *branches: sum(branch(x) for branch in branches), *parts), nn.ReLU())

    return seq(conv(3, 8, stride=2), block(8, 3, 8), block(8, 1, 1), head(8))


def lcnet() -> Module:
    act = nn.Hardswish
    last = seq(dw(16, 5, act), gate(16, end=nn.Hardsigmoid), conv(16, 24, 1, act))
    return seq(conv(3, 8, 3, act, stride=2), dw(8, 3, act), conv(8, 16, 1, act), last, head(24))


def gated_tcn() -> Module:
    """Gated linear units, normalised without factors."""

    def block(dilation: int) -> Module:
        wide = nn.Conv1d(8, 16, 3, padding=dilation, dilation=dilation)
        return plus(wide, nn.GLU(1), nn.GroupNorm(2, 8, affine=False), act=None)

    return seq(nn.Conv1d(1, 8, 1), block(1), block(2), block(4), nn.Conv1d(8, 4, 1))


def wav2vec() -> Module:
    """The part that finds features in a wave, and a context by a wide convolution in groups."""
    turned = of(lambda x: x.transpose(1, 2))
    first = nn.Conv1d(1, 8, 10, 5, bias=False), nn.GroupNorm(8, 8), nn.GELU()
    second = nn.Conv1d(8, 8, 3, 2, bias=False), nn.GELU(), nn.Conv1d(8, 8, 2, 2, bias=False), nn.GELU()
    place = Net(
        lambda x, c: x + torch.nn.functional.gelu(c(x.transpose(1, 2))).transpose(1, 2),
        nn.Conv1d(16, 16, 5, padding=2, groups=4),
    )
    return seq(*first, *second, turned, nn.LayerNorm(8), nn.Linear(8, 16), place, transformer(16), nn.Linear(16, 6))


def keyword_transformer() -> Module:
    """Columns of a spectrum as tokens behind one of a class."""

    class Tokens(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.place = (nn.Parameter(torch.randn(1, n, 16)) for n in (1, 21))

        def forward(self, x: Any) -> Any:
            return torch.cat([self.first, x], 1) + self.place

    return seq(
        of(lambda x: x.squeeze(1).transpose(1, 2)), nn.Linear(16, 16), Tokens(), transformer(), transformer(),
        of(lambda x: x[:, 0]), nn.Linear(16, 5),
    )  # fmt: skip


def face() -> Module:
    """MobileFaceNet: slopes of channels, and an embedding of length one."""

    def act() -> Module:
        return nn.PReLU(8)

    ends = conv(8, 12, 6, None, groups=4, padding=0), nn.Flatten(), nn.Linear(12, 6)
    unit = of(lambda x: torch.nn.functional.normalize(x, dim=1))
    return seq(conv(3, 8, 3, act, stride=2), dw(8, 3, act), plus(dw(8, 3, act), act=None), dw(8, stride=2), *ends, unit)


def coordinate_attention() -> Module:
    """Gates of rows and gates of columns, made together."""

    def compute(x: Any, both: Any, rows: Any, columns: Any) -> Any:
        tall, wide = x.mean(3, True), x.mean(2, True).transpose(2, 3)
        one, other = both(torch.cat([tall, wide], 2)).split(12, 2)
        return x * torch.sigmoid(rows(one)) * torch.sigmoid(columns(other.transpose(2, 3)))

    block = Net(compute, conv(8, 8, 1, nn.Hardswish), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 1))
    return seq(conv(3, 8, stride=2), block, conv(8, 8), head(8))


def gmlp() -> Module:
    """A gate of tokens that is a product of both halves."""

    def unit(x: Any, norm: Any, mix: Any) -> Any:
        u, v = x.chunk(2, -1)
        return u * mix(norm(v).transpose(1, 2)).transpose(1, 2)

    def block() -> Module:
        spatial = Net(unit, nn.LayerNorm(16), nn.Linear(16, 16))
        return plus(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), spatial, nn.Linear(16, 16), act=None)

    return seq(tokens(16, 6), block(), block(), mean_head(16))


def response_norm() -> Module:
    """ConvNeXt V2: the lengths of channels, by their mean."""

    def grn(x: Any) -> Any:
        length = x.square().sum((1, 2), keepdim=True).sqrt()
        return x + x * (length / (length.mean(-1, keepdim=True) + 1e-6))

    wide = nn.LayerNorm(8), nn.Linear(8, 24), nn.GELU(), of(grn), nn.Linear(24, 8)
    block = plus(nn.Conv2d(8, 8, 5, padding=2, groups=8), channels_last(*wide), act=None)
    return seq(nn.Conv2d(3, 8, 4, 4), block, head(8))


def x_vector() -> Module:
    """Layers over time, then their means and deviations."""
    frames = nn.Conv1d(16, 12, 5), nn.ReLU(), nn.BatchNorm1d(12), nn.Conv1d(12, 12, 3, dilation=2), nn.ReLU()
    pooled = of(lambda x: torch.cat([x.mean(2), (x.var(2, correction=0) + 1e-3).sqrt()], 1))
    return seq(of(lambda x: x.squeeze(1)), *frames, pooled, nn.Linear(24, 6))


def fomo() -> Module:
    """Classes of each cell of a grid."""
    body = conv(3, 8, 3, nn.ReLU6, stride=2), inverted(8, 12, 2), inverted(12, 12), conv(12, 12, 1)
    return seq(*body, nn.Conv2d(12, 3, 1), nn.Softmax(1))


def picodet() -> Module:
    """Boxes as means of distances, each with its probability."""

    def distances(x: Any) -> Any:
        n, _, h, w = x.shape
        bins = torch.softmax(x.reshape(n, 4, 8, h * w), 2)
        return (bins * torch.arange(8.0).reshape(1, 1, 8, 1)).sum(2)

    body = conv(3, 8, 3, nn.Hardswish, stride=2), dw(8, 5, nn.Hardswish, stride=2), conv(8, 12, 1, nn.Hardswish)
    boxes, classes = seq(nn.Conv2d(12, 32, 1), of(distances)), seq(nn.Conv2d(12, 3, 1), nn.Sigmoid(), nn.Flatten(2))
    return seq(*body, cat(boxes, classes))


def attention_unet() -> Module:
    def join(x: Any, down: Any, middle: Any, skip: Any, signal: Any, psi: Any, end: Any) -> Any:
        high = down(x)
        low = torch.nn.functional.interpolate(middle(high), scale_factor=2.0, mode="bilinear")
        return end(torch.cat([high * torch.sigmoid(psi(torch.relu(skip(high) + signal(low)))), low], 1))

    parts = conv(3, 8), seq(nn.MaxPool2d(2), conv(8, 8)), nn.Conv2d(8, 4, 1), nn.Conv2d(8, 4, 1), nn.Conv2d(4, 1, 1)
    return Net(join, *parts, seq(conv(16, 8), nn.Conv2d(8, 2, 1)))


def ghost_v2() -> Module:
    """Cheap channels, and long-range gates of less resolution."""

    def compute(x: Any, first: Any, cheap: Any, long: Any) -> Any:
        y = first(x)
        gates = torch.sigmoid(long(torch.nn.functional.avg_pool2d(x, 2, 2)))
        wide = torch.nn.functional.interpolate(gates, scale_factor=2.0, mode="nearest")
        return torch.cat([y, cheap(y)], 1) * wide

    across = nn.Conv2d(8, 8, (1, 5), padding=(0, 2), groups=8), nn.Conv2d(8, 8, (5, 1), padding=(2, 0), groups=8)
    long = nn.Conv2d(8, 8, 1), *across
    return seq(conv(3, 8, stride=2), Net(compute, conv(8, 4, 1), dw(4), seq(*long)), conv(8, 8), head(8))


def tc_resnet() -> Module:
    def block(inputs: int, outputs: int) -> Module:
        first = nn.Conv1d(inputs, outputs, 9, 2, 4, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()
        short = seq(nn.Conv1d(inputs, outputs, 1, 2, bias=False), nn.BatchNorm1d(outputs), nn.ReLU())
        return plus(*first, nn.Conv1d(outputs, outputs, 9, 1, 4, bias=False), nn.BatchNorm1d(outputs), short=short)

    start = of(lambda x: x.squeeze(1)), nn.Conv1d(16, 8, 3, padding=1, bias=False)
    return seq(*start, block(8, 12), block(12, 12), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(12, 5))


def antialiased() -> Module:
    """A fixed blur of mirrored borders before each stride, and a norm of subspectra."""
    blur = nn.Conv2d(8, 8, 3, 2, groups=8, bias=False)
    blur.weight.data[:] = torch.tensor([[1.0, 2, 1], [2, 4, 2], [1, 2, 1]]) / 16
    return seq(conv(3, 8), nn.MaxPool2d(2, 1), nn.ReflectionPad2d(1), blur, nn.InstanceNorm2d(8), conv(8, 8), head(8))
