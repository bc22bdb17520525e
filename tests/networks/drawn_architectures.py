"""Random networks of PyTorch that nobody tuned for, by a seed: images of odd sizes through four to ten drawn blocks.

Images have 9 to 22 rows and columns that seldom agree, and 1 or 3 channels; blocks have 3 to 24 channels, every second
time no multiple of four. A block is a convolution (window of 1, 3, 5 or 1x7, steps, groups, dilation), a depthwise one,
a pool, a residual sum, branches side by side, an earlier result of the same size beside the image, a gate, a resize, a
transposed convolution, a normalisation, an activation of sixteen, a part or a frame of the image, halves that go apart,
a shuffle of channels, or attention along a row. Heads classify, mark pixels, give boxes and classes, or an embedding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.models.architectures.blocks import Module, attention, cat, dw, gate, inverted, nn, of, plus, seq
from support.models.exported import Net, torch

functional = nn.functional
ACTIVATIONS: tuple[Callable[[], Module], ...] = (
    *(nn.ReLU, nn.ReLU, nn.ReLU, nn.ReLU6, nn.Hardswish, nn.SiLU, nn.GELU, nn.LeakyReLU, nn.PReLU, nn.ELU),
    *(nn.Sigmoid, nn.Tanh, nn.Mish, nn.Hardsigmoid, nn.Softplus, nn.SELU, nn.Hardtanh),
)


class Drawn(nn.Module):  # type: ignore[misc]
    """Blocks one after the other; some read an earlier result, too."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = np.random.default_rng(seed)
        self.channels, self.height, self.width = self.one_of(1, 3, 3), self.between(9, 22), self.between(9, 22)
        self.shape = (1, self.channels, self.height, self.width)
        self.names: list[str] = []
        self.skips: dict[int, int] = {}
        self.blocks = nn.ModuleList()
        self._known: list[tuple[int, int, int]] = []
        self._add("conv", conv(self))
        for _ in range(self.between(3, 9)):
            name = self.one_of(*BLOCKS)
            self._add(name, BLOCKS[name](self))
        name = self.one_of(*HEADS)
        self._add(name, HEADS[name](self))

    def one_of(self, *values: Any) -> Any:
        return values[int(self.random.integers(len(values)))]

    def between(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def wide(self) -> int:
        return int(self.one_of(4 * self.between(1, 6), self.between(3, 24)))

    def act(self) -> Module:
        made = self.one_of(*ACTIVATIONS)
        return made(self.channels) if made is nn.PReLU and self.one_of(True, False) else made()

    def _add(self, name: str, block: Module) -> None:
        self.names.append(name)
        self.blocks.append(block)
        self._known.append((self.channels, self.height, self.width))

    def beside(self) -> int | None:
        """An earlier result with images of this size."""
        fits = [i for i, known in enumerate(self._known[:-1]) if known[1:] == (self.height, self.width)]
        return self.one_of(*fits) if fits else None

    def known(self, index: int) -> int:
        return self._known[index][0]

    def forward(self, x: Any) -> Any:
        made: list[Any] = []
        for number, block in enumerate(self.blocks):
            x = block(x, made[self.skips[number]]) if number in self.skips else block(x)
            made.append(x)
        return x


def _strided(net: Drawn, stride: int) -> int:
    stride = stride if min(net.height, net.width) > 5 else 1
    net.height, net.width = -(-net.height // stride), -(-net.width // stride)
    return stride


def _finished(net: Drawn) -> list[Module]:
    norm = [nn.BatchNorm2d(net.channels)] if net.one_of(True, True, False) else []
    return [*norm, *([net.act()] if net.one_of(True, True, True, False) else [])]


def conv(net: Drawn) -> Module:
    kernel = net.one_of(1, 1, 3, 3, 3, 5, (1, 7))
    height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
    dilation = net.one_of(1, 1, 1, 2) if kernel == 3 else 1
    inputs, groups = net.channels, 2 if net.channels % 2 == 0 and net.one_of(True, False, False) else 1
    outputs = net.channels = 2 * (net.wide() // 2 + 1) if groups == 2 else net.wide()
    stride = 1 if dilation > 1 else _strided(net, net.one_of(1, 1, 2))
    padding = (height // 2 * dilation, width // 2 * dilation)
    bias = net.one_of(True, False)
    made = nn.Conv2d(inputs, outputs, (height, width), stride, padding, dilation, groups, bias)
    return seq(made, *_finished(net))


def depthwise(net: Drawn) -> Module:
    kernel, multiplier, inputs = net.one_of(3, 5), net.one_of(1, 1, 1, 2), net.channels
    net.channels *= multiplier
    stride = _strided(net, net.one_of(1, 1, 2))
    made = nn.Conv2d(inputs, net.channels, kernel, stride, kernel // 2, groups=inputs, bias=net.one_of(True, False))
    return seq(made, *_finished(net))


def pool(net: Drawn) -> Module:
    kind = net.one_of(nn.MaxPool2d, nn.AvgPool2d)
    if net.one_of(True, False) and min(net.height, net.width) > 5:
        net.height, net.width = net.height // 2, net.width // 2
        return kind(2)
    return kind(3, _strided(net, net.one_of(1, 2)), 1)


def residual(net: Drawn) -> Module:
    width = net.wide()
    first = seq(nn.Conv2d(net.channels, width, 1), nn.BatchNorm2d(width), net.one_of(nn.ReLU, nn.SiLU, nn.ReLU6)())
    end = net.one_of(None, nn.ReLU, nn.LeakyReLU)
    middle = dw(width, act=None) if net.one_of(True, False) else nn.Conv2d(width, width, 3, padding=1)
    return plus(first, middle, nn.Conv2d(width, net.channels, 1), act=end)


def mobile(net: Drawn) -> Module:
    act, se = net.one_of(nn.ReLU6, nn.Hardswish, nn.SiLU), net.one_of(None, gate)
    return inverted(net.channels, net.channels, act=act, se=se)


def branches(net: Drawn) -> Module:
    inputs, parts = net.channels, []
    net.channels = 0
    for _ in range(net.between(2, 3)):
        outputs, kernel = net.between(2, 8), net.one_of(1, 3)
        part = [nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2), net.one_of(nn.ReLU, nn.SiLU, nn.Identity)()]
        parts.append(seq(nn.MaxPool2d(3, 1, 1), *part) if net.one_of(True, False, False) else seq(*part))
        net.channels += outputs
    return cat(*parts)


def earlier(net: Drawn) -> Module:
    """An earlier result beside this one, or added to it."""
    index = net.beside()
    if index is None:
        return branches(net)
    net.skips[len(net.blocks)] = index
    if net.known(index) == net.channels and net.one_of(True, False):
        return net.one_of(of(lambda x, y: x + y), of(lambda x, y: x * y))
    net.channels += net.known(index)
    return of(lambda x, y: torch.cat([x, y], 1))


def gated(net: Drawn) -> Module:
    return gate(net.channels, net.one_of(nn.ReLU, nn.SiLU), net.one_of(nn.Sigmoid, nn.Hardsigmoid))


def enlarged(net: Drawn) -> Module:
    if max(net.height, net.width) > 24:
        return conv(net)
    net.height, net.width = 2 * net.height, 2 * net.width
    if net.one_of(True, False):
        return nn.Upsample(scale_factor=2, mode=net.one_of("nearest", "bilinear"))
    kernel, inputs = net.one_of((2, 0), (4, 1)), net.channels
    net.channels = net.between(2, 12)
    return seq(nn.ConvTranspose2d(inputs, net.channels, kernel[0], 2, kernel[1]), *_finished(net))


def norm(net: Drawn) -> Module:
    if net.one_of(True, False):
        last = seq(of(lambda x: x.permute(0, 2, 3, 1)), nn.LayerNorm(net.channels))
        return seq(last, of(lambda x: x.permute(0, 3, 1, 2)))
    return net.one_of(nn.BatchNorm2d(net.channels), nn.GroupNorm(1, net.channels))


def framed(net: Drawn) -> Module:
    """With a frame, or without the outermost pixels."""
    if net.one_of(True, False) and min(net.height, net.width) > 5:
        net.height, net.width = net.height - 2, net.width - 3
        return of(lambda x: x[:, :, 1:-1, 2:-1])
    net.height, net.width = net.height + 1, net.width + 3
    return net.one_of(nn.ZeroPad2d((1, 2, 0, 1)), nn.ReflectionPad2d((1, 2, 0, 1)), nn.ReplicationPad2d((1, 2, 0, 1)))


def halves(net: Drawn) -> Module:
    start = nn.Conv2d(net.channels, 2 * net.between(2, 8), 1)
    net.channels = start.out_channels // 2
    if net.one_of(True, False):
        return Net(lambda x, c: torch.tanh(c(x).chunk(2, 1)[0]) * torch.sigmoid(c(x).chunk(2, 1)[1]), start)
    inner = nn.Conv2d(net.channels, net.channels, 3, padding=1)
    both = net.channels
    net.channels *= 2

    def compute(x: Any, c: Any, i: Any) -> Any:
        first, second = torch.split(c(x), both, 1)
        return torch.cat([first, i(second)], 1)

    return Net(compute, start, inner)


def shuffled(net: Drawn) -> Module:
    if net.channels % 2:
        return conv(net)
    half, height, width = net.channels // 2, net.height, net.width

    def compute(x: Any) -> Any:
        return x.reshape(1, 2, half, height, width).transpose(1, 2).reshape(1, 2 * half, height, width)

    return of(compute)


def attending(net: Drawn) -> Module:
    """Each pixel to all of them; of few."""
    if net.height * net.width > 100:
        return pool(net)
    channels, height, width = net.channels, net.height, net.width
    outputs = net.channels = 4 * max(1, channels // 4)
    start = nn.Conv2d(channels, outputs, 1)
    block = plus(nn.LayerNorm(outputs), attention(outputs), act=None)
    back = of(lambda x: x.transpose(1, 2).reshape(1, outputs, height, width))
    return seq(start, of(lambda x: x.flatten(2).transpose(1, 2)), block, back)


BLOCKS: dict[str, Callable[[Drawn], Module]] = {
    "conv": conv,
    "depthwise": depthwise,
    "pool": pool,
    "residual": residual,
    "mobile": mobile,
    "branches": branches,
    "earlier": earlier,
    "gate": gated,
    "enlarged": enlarged,
    "norm": norm,
    "frame": framed,
    "halves": halves,
    "shuffle": shuffled,
    "attention": attending,
    "activation": lambda net: net.act(),
}


def classes(net: Drawn) -> Module:
    inner = [nn.Linear(net.channels, 9), net.act()] if net.one_of(True, False) else []
    inner = inner if not any(isinstance(part, nn.PReLU) for part in inner) else [nn.Linear(net.channels, 9), nn.ReLU()]
    start = net.one_of(nn.AdaptiveAvgPool2d(1), nn.AdaptiveMaxPool2d(1))
    end = [nn.Softmax(-1)] if net.one_of(True, False) else []
    return seq(start, nn.Flatten(), *inner, nn.Linear(9 if inner else net.channels, 5), *end)


def flattened(net: Drawn) -> Module:
    return seq(nn.Conv2d(net.channels, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(2 * net.height * net.width, 5))


def pixels(net: Drawn) -> Module:
    return net.one_of(nn.Conv2d(net.channels, 3, 1), seq(nn.Conv2d(net.channels, 3, 3, padding=1), nn.Softmax(1)))


def boxes(net: Drawn) -> Module:
    """Two rows for each place: a box and three classes."""

    def compute(x: Any, box: Any, kind: Any) -> Any:
        rows = [part(x).permute(0, 2, 3, 1).reshape(1, -1, width) for part, width in ((box, 4), (kind, 3))]
        return rows[0], torch.sigmoid(rows[1])

    return Net(compute, nn.Conv2d(net.channels, 8, 3, padding=1), nn.Conv2d(net.channels, 6, 1))


def embedding(net: Drawn) -> Module:
    return seq(of(lambda x: x.mean((2, 3))), nn.Linear(net.channels, 8), of(lambda x: functional.normalize(x, dim=1)))


HEADS: dict[str, Callable[[Drawn], Module]] = {
    "classes": classes,
    "flattened": flattened,
    "pixels": pixels,
    "boxes": boxes,
    "embedding": embedding,
}


def drawn(seed: int) -> Drawn:
    torch.manual_seed(seed)
    return Drawn(seed)
