"""Each way in which a program says that it quantises, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.exported import Net, computed, exported, random, save, torch
from uaccel.errors import ModelError
from uaccel.frontend.torch.importer import import_torch
from uaccel.frontend.torch.program import register_torchao, torch_package
from uaccel.model import ImportedModel, Quantisation
from uaccel.tvm_api.executor import Executor

torch_package()
Q = torch.ops.quantized_decomposed
INT8, UINT8, INT16 = torch.int8, torch.uint8, torch.int16
SCALES, ZEROS = torch.tensor([0.03, 0.01, 0.02, 0.05]), torch.tensor([3, -7, 0, 12])
X = random(1, 4, 6, 6)
"""No element of it lies half-way between two steps, where TVM rounds otherwise than PyTorch."""


def per_tensor(x: Any, dtype: Any = INT8, low: int = -128, high: int = 127, zero: int = 3) -> Any:
    return Q.quantize_per_tensor.default(x, 0.02, zero, low, high, dtype)


def back(x: Any, dtype: Any = INT8, low: int = -128, high: int = 127, zero: int = 3) -> Any:
    return Q.dequantize_per_tensor.default(x, 0.02, zero, low, high, dtype)


def affine(x: Any, block: list[int], scale: Any, zero: Any, back: bool = False) -> Any:
    there = torch.ops.torchao.quantize_affine(x, block, scale, zero, INT8, -128, 127)
    return torch.ops.torchao.dequantize_affine(there, block, scale, zero, INT8, -128, 127) if back else there


def numbers(value: float) -> Any:
    return torch.tensor([value])


def measured(x: Any, dtype: Any = INT8, low: int = -128, high: int = 127, symmetric: bool = False) -> Any:
    """Dynamic quantisation, and back."""
    choose = Q.choose_qparams_symmetric if symmetric else Q.choose_qparams
    scale, zero = choose.tensor(x, low, high, 1e-5, dtype)
    there = Q.quantize_per_tensor.tensor(x, scale, zero, low, high, dtype)
    return Q.dequantize_per_tensor.tensor(there, scale, zero, low, high, dtype)


WAYS: dict[str, Callable[[Any], Any]] = {
    "int8": per_tensor,
    "uint8": lambda x: per_tensor(x, UINT8, 0, 255, 129),
    "int16": lambda x: per_tensor(x, INT16, -32768, 32767, 0),
    "narrow": lambda x: per_tensor(x, low=-100, high=90),
    "narrow below": lambda x: per_tensor(x, low=-127),
    "there and back": lambda x: back(per_tensor(x)),
    "tensors": lambda x: Q.quantize_per_tensor.tensor(x, numbers(0.02), torch.tensor([3]), -128, 127, INT8),
    "per channel": lambda x: Q.quantize_per_channel.default(x, SCALES, ZEROS, 1, -128, 127, INT8),
    "per channel and back": lambda x: Q.dequantize_per_channel.default(
        Q.quantize_per_channel.default(x, SCALES, ZEROS, 1, -128, 127, INT8), SCALES, ZEROS, 1, -128, 127, INT8
    ),
    "measured": measured,
    "measured, above 0": lambda x: measured(x.abs() + 1, UINT8, 0, 255),
    "measured, symmetric": lambda x: measured(x, low=-127, symmetric=True),
    "measured, symmetric, of uint8": lambda x: measured(x, UINT8, 0, 255, symmetric=True),
    "measured, nothing": lambda x: measured(x * 0),
    "a scale that is computed": lambda x: Q.quantize_per_tensor.tensor(
        x, x.amax().reshape(1) / 127, torch.tensor([0]), -128, 127, INT8
    ),
    "a number": lambda x: x * back(per_tensor(torch.tensor(0.7))),
}
AFFINE: dict[str, Callable[[Any], Any]] = {
    "one scale": lambda x: affine(x, [1, 4, 6, 6], numbers(0.02), torch.tensor([3])),
    "a scale for each slice": lambda x: affine(x, [1, 1, 6, 6], SCALES, ZEROS),
    "and back": lambda x: affine(x, [1, 1, 6, 6], SCALES, ZEROS, back=True),
}


def imported(compute: Callable[[Any], Any], folder: Path, value: Any = X) -> tuple[Any, ImportedModel]:
    program = exported(Net(compute).eval(), [value])
    return program, import_torch(save(program, folder / "model.pt2"))


def check(compute: Callable[[Any], Any], folder: Path) -> None:
    program, model = imported(compute, folder)
    (got,), (wanted,) = Executor(model.module).run([np.asarray(X)]), computed(program, [X])
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=0)


@pytest.mark.parametrize("way", WAYS)
def test_it_means_what_it_does_to_pytorch(way: str, tmp_path: Path) -> None:
    check(WAYS[way], tmp_path)


@pytest.mark.parametrize("way", AFFINE)
def test_so_do_the_operators_of_torchao(way: str, tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    register_torchao()
    check(AFFINE[way], tmp_path)


def test_the_signature_says_what_integers_stand_for(tmp_path: Path) -> None:
    value = torch.zeros(1, 4, dtype=INT8)
    _, model = imported(lambda x: per_tensor(torch.relu(back(x, zero=5))), tmp_path, value)
    (entry,), (result,) = model.signature.inputs, model.signature.outputs
    assert entry.quantisation == Quantisation((float(np.float32(0.02)),), (5,))
    assert result.quantisation == Quantisation((float(np.float32(0.02)),), (3,))


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "dynamic": (
        lambda x: Q.quantize_per_channel.default(x, x.amax((0, 2, 3)), ZEROS, 1, -128, 127, INT8),
        "is computed at run time, and is not one number for a whole tensor; quantise with a static scheme",
    ),
    "dynamic for each token": (
        lambda x: Q.choose_qparams_per_token(x, INT8)[0],
        "it finds scales at run time (dynamic quantisation), other than one for a whole tensor; quantise with a static "
        "scheme",
    ),
    "zero point": (lambda x: per_tensor(x, zero=300), "a zero point lies outside int8"),
    "scale": (
        lambda x: Q.quantize_per_tensor.default(x, 0.0, 0, -128, 127, INT8),
        "a scale is not a positive number",
    ),
    "number of scales": (
        lambda x: Q.dequantize_per_channel.default(x.to(INT8), SCALES[:1], ZEROS[:1], 1, -128, 127, INT8),
        "it has 1 scales and 1 zero points for 4 slices",
    ),
    "types": (
        lambda x: Q.dequantize_per_tensor.default(x.to(INT8), 0.1, 0, -128, 127, INT8, out_dtype=torch.float64),
        "it gives torch.float64; only float32 can be compiled",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    compute, text = REFUSED[name]
    with pytest.raises(ModelError) as caught:
        imported(compute, tmp_path)
    assert str(caught.value).endswith(text)


def test_blocks_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("torchao")
    register_torchao()
    with pytest.raises(ModelError) as caught:
        imported(lambda x: affine(x, [1, 2, 6, 6], SCALES[:2], ZEROS[:2]), tmp_path)
    assert str(caught.value).endswith(
        "it has a scale for every block of [1, 2, 6, 6]; supported is one for all, one for each slice of one axis, or "
        "one for each block of the rows of a constant matrix"
    )
