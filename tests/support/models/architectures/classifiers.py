"""Classifiers of images, with few channels and random weights."""

from __future__ import annotations

from typing import Any

from support.models.architectures.blocks import Module, cat, conv, dw, gate, head, inverted, nn, plus
from support.models.exported import Net, torch


def vgg() -> Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 16),
        nn.ReLU(),
        nn.Linear(16, 5),
    )


def resnet(groups: int = 1, se: bool = False) -> Module:
    short = conv(8, 16, 1, None, stride=2)
    more = [gate(16)] if se else []
    first = plus(conv(8, 8), conv(8, 8, 3, None))
    second = plus(conv(8, 16, 1), conv(16, 16, stride=2, groups=groups), conv(16, 16, 1, None), *more, short=short)
    return nn.Sequential(conv(3, 8, 5, stride=2), nn.MaxPool2d(3, 2, 1), first, second, head(16))


def preactivated() -> Module:
    def block() -> Module:
        return plus(nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), act=None)

    return nn.Sequential(conv(3, 8, stride=2), block(), block(), nn.BatchNorm2d(8), nn.ReLU(), head(8))


def densenet() -> Module:
    def layer(inputs: int) -> Module:
        return cat(nn.Identity(), nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU(), nn.Conv2d(inputs, 4, 3, padding=1)))

    return nn.Sequential(
        conv(3, 8, stride=2),
        layer(8),
        layer(12),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 8, 1),
        nn.AvgPool2d(2),
        layer(8),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        head(12),
    )


def mobile(act: Any = nn.ReLU6, se: Any = None, kernel: int = 3) -> Module:
    blocks = [
        inverted(8, 8, 1, act, se, kernel),
        inverted(8, 12, 2, act, se, kernel),
        inverted(12, 12, 1, act, se, kernel),
    ]
    return nn.Sequential(conv(3, 8, 3, act, stride=2), *blocks, conv(12, 24, 1, act), head(24))


def mobilenet_v1() -> Module:
    return nn.Sequential(conv(3, 8, stride=2), dw(8), conv(8, 16, 1), dw(16, stride=2), conv(16, 16, 1), head(16))


def shuffle(x: Any, groups: int = 2) -> Any:
    n, c, h, w = x.shape
    return x.reshape(n, groups, c // groups, h, w).transpose(1, 2).reshape(n, c, h, w)


def shufflenet() -> Module:
    def unit() -> Module:
        branch = nn.Sequential(conv(4, 4, 1), dw(4, act=None), conv(4, 4, 1))
        return Net(lambda x, b: shuffle(torch.cat([x[:, :4], b(x[:, 4:])], 1)), branch)

    return nn.Sequential(conv(3, 8, stride=2), nn.MaxPool2d(3, 2, 1), unit(), unit(), head(8))


def squeezenet() -> Module:
    def fire(inputs: int) -> Module:
        sides = cat(
            nn.Sequential(nn.Conv2d(4, 8, 1), nn.ReLU()), nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU())
        )
        return nn.Sequential(nn.Conv2d(inputs, 4, 1), nn.ReLU(), sides)

    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2),
        nn.ReLU(),
        fire(8),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        fire(16),
        nn.Conv2d(16, 5, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


def inception() -> Module:
    pool = nn.Sequential(nn.AvgPool2d(3, 1, 1), conv(8, 4, 1))
    tall = nn.Sequential(
        conv(8, 4, 1), nn.Conv2d(4, 4, (1, 5), padding=(0, 2)), nn.Conv2d(4, 4, (5, 1), padding=(2, 0)), nn.ReLU()
    )
    return nn.Sequential(
        conv(3, 8, stride=2),
        cat(conv(8, 4, 1), nn.Sequential(conv(8, 4, 1), conv(4, 4)), tall, pool),
        nn.MaxPool2d(2),
        head(16),
    )


def googlenet() -> Module:
    pool = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(8, 4, 1))
    return nn.Sequential(conv(3, 8, 5, stride=2), cat(conv(8, 4, 1), conv(8, 8), conv(8, 4, 5), pool), head(20))
