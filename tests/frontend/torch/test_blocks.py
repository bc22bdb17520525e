"""Linear layers whose weights are small integers with a scale for each block: PyTorch is the oracle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.hostlib import HostModel
from support.models.exported import Net, computed, exported, random, save, torch
from uaccel.errors import ModelError
from uaccel.frontend.torch.importer import import_torch
from uaccel.frontend.torch.program import register_torchao, torch_package
from uaccel.ops.kernel import Constant
from uaccel.pipeline import compile_model

torch_package()
INT8, UINT8 = torch.int8, torch.uint8


@pytest.fixture(autouse=True, scope="module")
def torchao() -> None:
    pytest.importorskip("torchao")
    register_torchao()


class Product(Net):
    """A product with ``stored``, whose rows have ``size`` integers for each scale; ``multiply`` says which."""

    def __init__(self, stored: Any, size: int, zero: Any = None, bias: Any = None, multiply: Any = None) -> None:
        super().__init__(self.forward)
        self.size, self.multiply = size, multiply or linear
        self.register_buffer("stored", stored)
        self.register_buffer("scale", random(len(stored), stored.shape[1] // size).abs() / 50 + 0.001)
        self.register_buffer("zero", zero)
        self.register_buffer("bias", bias)

    def forward(self, x: Any) -> Any:
        return self.multiply(self, x)


class All(Net):
    """Many products, each of an input of its own."""

    def forward(self, *x: Any) -> Any:
        return [part(one) for part, one in zip(self.parts, x, strict=True)]


def integers(*shape: int, dtype: Any = INT8, low: int = -128, high: int = 127) -> Any:
    return torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(sum(shape))).to(dtype)


def affine(module: Any) -> Any:
    low, high = (0, 255) if module.stored.dtype == UINT8 else (-128, 127)
    given = (module.stored, [1, module.size], module.scale, module.zero, module.stored.dtype, low, high)
    return torch.ops.torchao.dequantize_affine(*given)


def linear(module: Any, x: Any) -> Any:
    return torch.nn.functional.linear(x, affine(module), module.bias)


def grouped(module: Any, x: Any) -> Any:
    operator = torch.ops.quantized_decomposed.dequantize_per_channel_group
    given = (module.stored, module.scale, module.zero, -128, 127, INT8, module.size, torch.float32)
    return torch.nn.functional.linear(x, operator(*given), module.bias)


def nibbles(*shape: int) -> Any:
    return integers(*shape, low=-8, high=7)


PRODUCTS: dict[str, tuple[Any, tuple[int, ...], int]] = {
    "bytes": (Product(integers(6, 96), 32, bias=random(6)), (2, 96), 6 * 96),
    "nibbles": (Product(nibbles(6, 96), 32, bias=random(6)), (2, 96), 6 * 48),
    "no bias, rank 3": (Product(integers(5, 64), 16), (2, 3, 64), 5 * 64),
    "zero points": (Product(integers(5, 64), 16, integers(5, 4)), (3, 64), 5 * 64),
    "uint8": (
        Product(integers(5, 64, dtype=UINT8, low=0, high=255), 16, integers(5, 4, low=0), random(5)),
        (3, 64),
        5 * 64,
    ),
    "one row": (Product(integers(1, 64), 16), (1, 64), 64),
    "a scale each": (Product(integers(3, 8), 1), (1, 8), 24),
    "groups of channels": (Product(integers(6, 64), 32, integers(6, 2).int(), random(6), grouped), (2, 64), 6 * 64),
    "turned": (Product(integers(7, 64), 32, multiply=lambda m, x: torch.mm(x, affine(m).t())), (2, 64), 7 * 64),
    "turned, rank 3": (
        Product(integers(7, 64), 32, multiply=lambda m, x: x @ affine(m).transpose(-1, 0)),
        (2, 3, 64),
        7 * 64,
    ),
    "not turned": (
        Product(integers(32, 32), 16, multiply=lambda m, x: torch.mm(x, affine(m).permute(0, 1))),
        (2, 32),
        0,
    ),
    "no product": (Product(integers(2, 64), 16, multiply=lambda m, x: (x * affine(m)).relu_()), (2, 64), 0),
}
"""A product, the shape of its input, and the bytes of its weights; 0: they are floats."""


@pytest.mark.parametrize("decomposed", [False, True])
def test_as_pytorch_and_packed(decomposed: bool, tmp_path: Path) -> None:
    """Whether the file has linear layers, or products with matrices that are turned first."""
    xs = [random(*shape, seed=1) for _, shape, _ in PRODUCTS.values()]
    program = exported(All(All.forward, *(part for part, *_ in PRODUCTS.values())), xs)
    table = torch.export.default_decompositions()
    for operator in [operator for operator in table if operator.namespace == "torchao"]:
        del table[operator]  # PyTorch would take the integers' meaning away
    path = save(program.run_decompositions(table) if decomposed else program, tmp_path / "m.pt2")
    compiled = compile_model(path, board="host")
    layers = [layer for layer in compiled.program.layers if layer.op == "fully_connected_blocks"]
    given = [given for layer in layers for call in layer.kernel.calls for given in call.arguments]
    weights = [one.data.nbytes for one in given if isinstance(one, Constant) and one.role == "weights"]
    assert weights == [size for *_, size in PRODUCTS.values() if size]
    sample = [x.numpy() for x in xs]
    for name, got, wanted in zip(PRODUCTS, HostModel(compiled)(*sample), computed(program, xs), strict=True):
        close = 1e-4 * np.abs(wanted).max()
        np.testing.assert_allclose(np.reshape(got, wanted.shape), wanted, atol=close, err_msg=name)


TWO = integers(2, 64)
REFUSED: dict[str, tuple[Any, str]] = {
    "activations": (
        Product(TWO, 16, multiply=lambda m, x: torch.ops.torchao.quantize_affine(x, [1, 16], m.scale, m.scale, INT8)),
        "it has a scale for every block of [1, 16]; supported is one for all, one for each slice of one axis, or one "
        "for each block of the rows of a constant matrix",
    ),
    "types": (Product(TWO.to(torch.int32), 16), "blocks of int32 are not supported, wanted int8 or uint8"),
    "zero points": (
        Product(TWO, 16, integers(2, 4), multiply=grouped),
        "its zero points are int8, whose differences overflow; give them as int32",
    ),
    "scales": (Product(-TWO, 16), "a scale is not a positive number of float32"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    module, text = REFUSED[name]
    if name == "scales":
        module.scale[0, 0] = -1
    path = save(exported(module, [random(2, 64)]), tmp_path / "m.pt2")
    with pytest.raises(ModelError) as caught:
        import_torch(path)
    assert str(caught.value).endswith(text), str(caught.value)
