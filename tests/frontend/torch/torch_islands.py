"""Islands of PyTorch, a row an operator: what PT2E leaves between its quantise and dequantise steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from support.models.exported import torch
from uaccel.frontend.torch.program import torch_package

torch_package()  # with the operators of quantised programs
F = torch.nn.functional
Tensor = Any
IMAGE = (1, 4, 8, 7)


@dataclass(frozen=True)
class Row:
    """``operators`` are ATen's, as coverage.md lists them; ``compute`` gets dequantised tensors of ``shapes``,
    then of ``weights``."""

    operators: tuple[str, ...]
    compute: Callable[..., Tensor]
    shapes: Sequence[tuple[int, ...]] = (IMAGE,)
    weights: Sequence[tuple[int, ...]] = ()
    scale: float = 0.05
    rarely: float = 0.01
    largest: int = 127  # weight


def stepped(value: Tensor, scale: float, zero_point: int) -> Tensor:
    ops = torch.ops.quantized_decomposed
    stored = ops.quantize_per_tensor(value, scale, zero_point, -128, 127, torch.int8)
    return ops.dequantize_per_tensor(stored, scale, zero_point, -128, 127, torch.int8)


class Island(torch.nn.Module):  # type: ignore[misc]
    """Weights are quantised for each slice of their first axis, and lie in the file as integers."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        self.row = row
        generator = torch.Generator().manual_seed(7)
        for place, shape in enumerate(row.weights):
            stored = torch.randint(-row.largest, row.largest + 1, shape, generator=generator, dtype=torch.int8)
            self.register_buffer(f"stored{place}", stored)
            self.register_buffer(f"scales{place}", torch.linspace(0.002, 0.02, shape[0]))
            self.register_buffer(f"zeros{place}", torch.zeros(shape[0], dtype=torch.int64))

    def forward(self, *inputs: Tensor) -> Tensor:
        reals = [stepped(value, 0.02 + 0.01 * place, 3 - place) for place, value in enumerate(inputs)]
        for place in range(len(self.row.weights)):
            parts = (getattr(self, f"{name}{place}") for name in ("stored", "scales", "zeros"))
            reals.append(torch.ops.quantized_decomposed.dequantize_per_channel(*parts, 0, -128, 127, torch.int8))
        return stepped(self.row.compute(*reals), self.row.scale, -5)


def row(*operators: str, compute: Callable[..., Any], **more: Any) -> Row:
    return Row(operators, compute, **more)


ROWS = (
    row("conv2d", compute=lambda x, w: F.conv2d(x, w, padding=1, stride=2), weights=[(6, 4, 3, 3)]),
    row("conv2d", "relu", compute=lambda x, w: torch.relu(F.conv2d(x, w, groups=4)), weights=[(4, 1, 3, 3)]),
    row("conv1d", compute=F.conv1d, shapes=[(1, 4, 20)], weights=[(6, 4, 3)]),
    row("linear", compute=F.linear, shapes=[(2, 3, 16)], weights=[(5, 16)]),
    row("linear", compute=F.linear, shapes=[(2, 16)], weights=[(5, 16)], largest=7),
    row("matmul", "transpose", compute=lambda a, b: a @ b.transpose(1, 2), shapes=[(2, 3, 8), (2, 5, 8)], scale=0.2),
    row("add", compute=lambda a, b: a + b, shapes=[IMAGE, IMAGE]),
    row("sub", compute=lambda a, b: a - b, shapes=[IMAGE, (4, 1, 1)]),
    row("mul", compute=lambda a, b: a * b, shapes=[IMAGE, (1, 4, 1, 1)]),
    row("cat", compute=lambda a, b: torch.cat([a, b], 1), shapes=[IMAGE, IMAGE]),
    row("stack", compute=lambda a, b: torch.stack([a, b], 2), shapes=[IMAGE, IMAGE]),
    row("maximum", compute=torch.maximum, shapes=[IMAGE, IMAGE]),
    row("minimum", compute=torch.minimum, shapes=[IMAGE, (4, 1, 1)]),
    row("max_pool2d", compute=lambda x: F.max_pool2d(x, 2)),
    row("avg_pool2d", compute=lambda x: F.avg_pool2d(x, 3, 2, 1), rarely=0.1),
    row("adaptive_avg_pool2d", compute=lambda x: F.adaptive_avg_pool2d(x, 1), rarely=0.1),
    row("adaptive_avg_pool2d", compute=lambda x: F.adaptive_avg_pool2d(x, (4, 1)), rarely=0.1),
    row("mean", compute=lambda x: x.mean((2, 3)), rarely=0.1),
    row("sigmoid", compute=torch.sigmoid),
    row("tanh", compute=torch.tanh),
    row("hardswish", compute=F.hardswish),
    row("hardsigmoid", compute=F.hardsigmoid),
    row("hardtanh", compute=lambda x: F.hardtanh(x, -0.5, 0.7)),
    row("leaky_relu", compute=lambda x: F.leaky_relu(x, 0.1)),
    row("gelu", compute=F.gelu),
    row("silu", compute=F.silu),
    row("elu", compute=F.elu),
    row("glu", compute=lambda x: F.glu(x, 1)),
    row("mul", "sigmoid", compute=lambda x, y: x * torch.sigmoid(y.flatten(1))[:, :4, None, None], shapes=[IMAGE] * 2),
    row("prelu", compute=lambda x: F.prelu(x, torch.tensor([0.1, -0.3, 0.7, 0.01]))),
    row("mish", compute=F.mish),
    row("max_pool1d", compute=lambda x: F.max_pool1d(x, 3, 2, 1), shapes=[(1, 4, 20)]),
    row("upsample_bilinear2d", compute=lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), rarely=0.1),
    row("upsample_linear1d", compute=lambda x: F.interpolate(x[0], scale_factor=2, mode="linear"), rarely=0.1),
    row("select", compute=lambda x: x[:, 1]),
    row("softmax", compute=lambda x: torch.softmax(x, -1), scale=1 / 256),
    row("layer_norm", compute=lambda x: F.layer_norm(x, (7,)), scale=0.03),
    row("group_norm", compute=lambda x: F.group_norm(x, 2, torch.arange(1.0, 5.0), torch.ones(4)), scale=0.05),
    row("group_norm", compute=lambda x: F.group_norm(x, 2), scale=0.03),
    row("group_norm", compute=lambda x: F.group_norm(x, 2), shapes=[(3, 8)], scale=0.03),
    row("instance_norm", compute=F.instance_norm, scale=0.03),
    row("permute", "reshape", compute=lambda x: x.permute(0, 2, 3, 1).reshape(1, -1)),
    row("slice", compute=lambda x: x[:, 1:3, ::2]),
    row("flatten", compute=lambda x: torch.flatten(x, 1)),
)


def operators_with_integers() -> set[str]:
    """The ATen operators that some row has between its steps."""
    return {name for entry in ROWS for name in entry.operators}
