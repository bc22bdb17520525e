"""Networks that give what they were given, larger, cleaner or anew."""

from __future__ import annotations

from itertools import pairwise

from support.models.architectures.blocks import Module, conv, nn, of, perceptron, plus, seq, up


def dense_autoencoder() -> Module:
    widths = [64, 16, 16, 4, 16, 16]
    parts = [seq(nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU()) for a, b in pairwise(widths)]
    return seq(*parts, nn.Linear(16, 64))


def autoencoder() -> Module:
    down = seq(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 12, 3, 2, 1), nn.ReLU())
    rise = seq(nn.ConvTranspose2d(12, 8, 3, 2, 1, 1), nn.ReLU(), nn.ConvTranspose2d(8, 3, 3, 2, 1, 1), nn.Sigmoid())
    return seq(down, rise)


def vae_decoder() -> Module:
    first = seq(nn.Linear(6, 72), nn.ReLU(), nn.Unflatten(1, (8, 3, 3)))
    return seq(first, up(), conv(8, 8, 3, nn.ELU), up(2, "bilinear"), nn.Conv2d(8, 3, 3, padding=1), nn.Sigmoid())


def gan_generator() -> Module:
    def rise(inputs: int, outputs: int, stride: int) -> Module:
        parts = nn.ConvTranspose2d(inputs, outputs, 4, stride, stride // 2, bias=False), nn.BatchNorm2d(outputs)
        return seq(*parts, nn.ReLU())

    return seq(rise(6, 12, 1), rise(12, 8, 2), nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Tanh())


def srcnn() -> Module:
    return seq(up(2, "bilinear"), nn.Conv2d(3, 8, 9, padding=4), nn.ReLU(), nn.Conv2d(8, 3, 5, padding=2))


def espcn() -> Module:
    parts = nn.Conv2d(3, 8, 5, padding=2), nn.Tanh(), nn.Conv2d(8, 8, 3, padding=1), nn.Tanh()
    return seq(*parts, nn.Conv2d(8, 12, 3, padding=1), nn.PixelShuffle(2))


def edsr() -> Module:
    """Residual blocks without normalisation, and a shortcut around all of them."""
    block = plus(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), act=None)
    return seq(
        nn.Conv2d(3, 8, 3, padding=1),
        plus(block, nn.Conv2d(8, 8, 3, padding=1), act=None),
        nn.Conv2d(8, 12, 1),
        nn.PixelShuffle(2),
    )


def cyclegan() -> Module:
    """Reflected borders, and normalisation of each image by itself."""

    def layer(inputs: int, outputs: int, kernel: int = 3) -> Module:
        return seq(nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inputs, outputs, kernel), nn.InstanceNorm2d(outputs))

    body = plus(layer(8, 8), nn.ReLU(), layer(8, 8), act=None)
    return seq(layer(3, 8, 5), nn.ReLU(), body, nn.ReflectionPad2d(1), nn.Conv2d(8, 3, 3), nn.Tanh())


def siren() -> Module:
    """Places to colours, by sines."""
    parts = [seq(nn.Linear(a, 16), of(lambda x: (4 * x).sin())) for a in (2, 16)]
    return seq(*parts, perceptron(16, 16, nn.Softplus), nn.Linear(16, 3))
