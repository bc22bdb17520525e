"""Networks whose result is as large as an image, or has a row for each of its places."""

from __future__ import annotations

from typing import Any

from support.models.architectures.blocks import Module, cat, conv, dw, gate, inverted, nn, plus, seq, up
from support.models.architectures.branched import leaky
from support.models.exported import Net, torch

resize = nn.functional.interpolate


def unet() -> Module:
    def compute(x: Any, first: Any, second: Any, rise: Any, end: Any) -> Any:
        fine = first(x)
        return end(torch.cat([fine, rise(second(fine))], 1))

    second = seq(nn.MaxPool2d(2), conv(8, 16), conv(16, 16))
    return Net(compute, conv(3, 8), second, nn.ConvTranspose2d(16, 8, 2, 2), seq(conv(16, 8), nn.Conv2d(8, 2, 1)))


def fcn() -> Module:
    """Scores of coarse places rise by a learned transposed convolution for each class."""
    rise = nn.ConvTranspose2d(5, 5, 8, 4, 2, groups=5, bias=False)
    return seq(conv(3, 8, stride=2), conv(8, 8, stride=2), nn.Conv2d(8, 5, 1), rise)


def fpn() -> Module:
    def compute(x: Any, first: Any, second: Any, side: Any, top: Any, rise: Any, *ends: Any) -> Any:
        fine = first(x)
        coarse = top(second(fine))
        return ends[0](rise(coarse) + side(fine)), ends[1](coarse)

    parts = conv(3, 8, stride=2), conv(8, 16, stride=2), nn.Conv2d(8, 8, 1), nn.Conv2d(16, 8, 1), up()
    return Net(compute, *parts, nn.Conv2d(8, 6, 3, padding=1), nn.Conv2d(8, 6, 3, padding=1))


def deeplab() -> Module:
    """Dilated convolutions side by side, a global mean among them, and a bilinear resize."""
    image = seq(nn.AdaptiveAvgPool2d(1), conv(8, 4, 1), up(6))
    side = cat(conv(8, 4, 1), conv(8, 4, dilation=2), conv(8, 4, dilation=3), image)
    start = seq(conv(3, 8, stride=2), conv(8, 8, stride=2))
    return seq(start, side, conv(16, 8, 1), nn.Conv2d(8, 3, 1), up(4, "bilinear"))


def bisenet() -> Module:
    """A path of detail and one of context, joined by a gate."""

    def compute(x: Any, detail: Any, context: Any, rise: Any, both: Any, refine: Any, end: Any) -> Any:
        y = both(torch.cat([detail(x), rise(context(x))], 1))
        return end(y + refine(y))

    detail = seq(conv(3, 8, stride=2), conv(8, 8, stride=2))
    context = seq(conv(3, 8, stride=2), dw(8, stride=2), conv(8, 8, stride=2), gate(8))
    return Net(compute, detail, context, up(), conv(16, 8, 1), gate(8), seq(nn.Conv2d(8, 3, 1), up(4, "bilinear")))


def espnet() -> Module:
    """A pyramid of dilations, each summed with those before."""

    def compute(x: Any, reduce: Any, *dilated: Any) -> Any:
        y, given = reduce(x), list[Any]()
        for each in dilated:
            given.append(each(y) + given[-1] if given else each(y))
        return torch.cat(given, 1) + x

    pyramid = Net(compute, nn.Conv2d(16, 4, 1), *(nn.Conv2d(4, 4, 3, padding=d, dilation=d) for d in (1, 2, 3, 4)))
    return seq(conv(3, 16, 3, nn.PReLU, stride=2), pyramid, nn.BatchNorm2d(16), nn.PReLU(), nn.Conv2d(16, 3, 1), up())


def enet() -> Module:
    """Asymmetric convolutions, transposed ones with an activation behind them."""
    tall = [conv(8, 4, 1, nn.PReLU), nn.Conv2d(4, 4, (5, 1), padding=(2, 0)), nn.Conv2d(4, 4, (1, 5), padding=(0, 2))]
    start = cat(nn.Conv2d(3, 5, 3, 2, 1), nn.MaxPool2d(2))
    rise = seq(nn.ConvTranspose2d(8, 8, 3, 2, 1, 1), nn.BatchNorm2d(8), nn.ReLU())
    return seq(start, plus(*tall, nn.PReLU(), conv(4, 8, 1, None)), rise, nn.Conv2d(8, 3, 1))


def hourglass() -> Module:
    def ring(inner: Module) -> Module:
        return plus(nn.MaxPool2d(2), conv(8, 8), inner, conv(8, 8), up(), act=None, short=conv(8, 8))

    return seq(conv(3, 8, stride=2), ring(ring(conv(8, 8))), nn.Conv2d(8, 4, 1))


def yolo() -> Module:
    """Pools side by side, two scales, boxes and classes in one result."""

    def spread(x: Any, start: Any, pool: Any, end: Any) -> Any:
        one = start(x)
        two = pool(one)
        return end(torch.cat([one, two, pool(two)], 1))

    def compute(x: Any, first: Any, second: Any, rise: Any, *ends: Any) -> Any:
        fine = first(x)
        coarse = second(fine)
        return ends[0](torch.cat([fine, rise(coarse)], 1)), ends[1](coarse)

    pools = Net(spread, conv(8, 4, 1, nn.SiLU), nn.MaxPool2d(5, 1, 2), conv(12, 8, 1, nn.SiLU))
    first = seq(conv(3, 8, 3, nn.SiLU, stride=2), plus(conv(8, 8, 3, nn.SiLU), act=None))
    second = seq(conv(8, 8, 3, nn.SiLU, stride=2), pools)
    return Net(compute, first, second, up(), nn.Conv2d(16, 9, 1), nn.Conv2d(8, 9, 1))


def yolo_tiny() -> Module:
    """The third: leaky activations before max-pools, and a decoded result."""

    def decode(x: Any, body: Any) -> Any:
        y = body(x).reshape(1, 3, 7, 6, 6).permute(0, 1, 3, 4, 2)
        return torch.cat([torch.sigmoid(y[..., :2]), torch.exp(y[..., 2:4]), torch.sigmoid(y[..., 4:])], -1)

    pools = [conv(3, 8, 3, leaky), nn.MaxPool2d(2), conv(8, 16, 3, leaky), nn.MaxPool2d(2)]
    return Net(decode, seq(*pools, nn.Conv2d(16, 21, 1)))


def ssd() -> Module:
    """Heads on two scales, their rows joined."""

    def rows(x: Any, width: int) -> Any:
        return x.permute(0, 2, 3, 1).reshape(1, -1, width)

    def compute(x: Any, first: Any, second: Any, *heads: Any) -> Any:
        fine = first(x)
        scales = fine, second(fine)
        boxes = [rows(each(scale), 4) for each, scale in zip(heads[:2], scales, strict=True)]
        classes = [rows(each(scale), 3) for each, scale in zip(heads[2:], scales, strict=True)]
        return torch.cat(boxes, 1), torch.softmax(torch.cat(classes, 1), -1)

    first = seq(conv(3, 8, 3, nn.ReLU6, stride=2), inverted(8, 8, 2))
    heads = [nn.Conv2d(8, 2 * width, 3, padding=1) for width in (4, 4, 3, 3)]
    return Net(compute, first, inverted(8, 8, 2), *heads)


def centernet() -> Module:
    """Maxima of a heat map, found by a max-pool."""

    def compute(x: Any, body: Any, heat: Any, size: Any) -> Any:
        y = body(x)
        found = torch.sigmoid(heat(y))
        return torch.maximum(found, nn.functional.max_pool2d(found, 3, 1, 1)), size(y)

    body = seq(conv(3, 8, stride=2), conv(8, 8, stride=2), nn.ConvTranspose2d(8, 8, 4, 2, 1), nn.ReLU())
    return Net(compute, body, nn.Conv2d(8, 2, 1), nn.Conv2d(8, 2, 1))


def pspnet() -> Module:
    """Means over parts of the image, enlarged and joined."""

    def level(size: int) -> Module:
        return seq(nn.AdaptiveAvgPool2d(size), conv(8, 4, 1), nn.Upsample(size=(6, 6), mode="bilinear"))

    return seq(
        conv(3, 8, stride=2),
        conv(8, 8, stride=2),
        cat(nn.Identity(), level(1), level(2), level(3)),
        nn.Conv2d(20, 3, 1),
    )
