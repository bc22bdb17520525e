"""What a model that computes in float is told, whatever format it came in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.hybrid_rows import ROWS
from support.models.many import many
from support.models.networks import OWN
from support.models.tflite_writer import ModelBuilder
from support.run.command import Call
from uaccel.frontend import import_model
from uaccel.model import ImportedModel, Signature
from uaccel.ops.matmul import BlockAttrs, FullyConnectedBlocks
from uaccel.ops.operator import get
from uaccel.partition.partition import float_advice
from uaccel.tvm_api import module_of, relax

HOW = "uaccel quantize MODEL.onnx --calibration DATA.npz does it"

MIXED = (
    "18 of 2,610 multiply-accumulates are in float; quantised to int8, its float weights would take 21 bytes of flash, "
    "and what kernels pad, instead of 84: have the TFLite converter quantise it (a representative_dataset, int8 "
    "operators)"
)


def of(shapes: Sequence[tuple[int, ...]], compute: Any, source_format: str = "onnx") -> tuple[str, ...]:
    """What is said of a module that computes this of inputs of these shapes."""
    builder = relax.BlockBuilder()
    parameters = [relax.Var(f"x{n}", relax.TensorType(shape, "float32")) for n, shape in enumerate(shapes)]
    with builder.function("main", parameters):
        with builder.dataflow():
            result = builder.emit_output(builder.emit(compute(*parameters)))
        builder.emit_func_output(result)
    (function,) = builder.get().functions.values()
    signature = Signature((), ())
    return float_advice(ImportedModel("model", source_format, "", module_of(function), signature, {}, {}))


def weights(*shape: int) -> Any:
    return relax.const(np.ones(shape, np.float32))


@pytest.mark.sample(1)
@pytest.mark.parametrize("command", ["compile", "run"])
def test_compile_and_run_say_it_once(command: str, tmp_path: Path, call: Call) -> None:
    more = ("-o", tmp_path / "out.tar") if command == "compile" else ()
    done = call(command, OWN / "mixed.tflite", "--board", "host", *more, "--json")
    assert done.status == 0
    assert done.report["warnings"] == [MIXED]


@pytest.mark.parametrize("network", ["gesture", "residual", "branches", "int16"])
def test_nothing_is_said_of_integers(network: str) -> None:
    assert float_advice(import_model(OWN / f"{network}.tflite")) == ()


def test_nothing_is_said_of_steps_at_the_ends(tmp_path: Path) -> None:
    builder = ModelBuilder()
    x = builder.input("x", (1, 4), "float32")
    q = builder.tensor("q", (1, 4), "int8", scale=0.5, zero_point=3)
    y = builder.tensor("y", (1, 4), "float32")
    builder.op("QUANTIZE", [x], [q])
    builder.op("DEQUANTIZE", [q], [y])
    builder.output(y)
    path = tmp_path / "ends.tflite"
    path.write_bytes(builder.build())
    assert float_advice(import_model(path)) == ()


def test_nothing_is_said_of_inputs_that_become_bytes(tmp_path: Path) -> None:
    path = tmp_path / "bytes.tflite"
    path.write_bytes(many({name: ROWS[name] for name in ("dense", "depthwise")}))
    assert float_advice(import_model(path)) == ()


def test_nothing_is_said_of_weights_in_blocks() -> None:
    zeros = relax.const(np.zeros((4, 32), np.int8))
    blocks = (zeros, weights(4, 2), relax.const(np.zeros((4, 2), np.int8)), weights(4))
    assert of([(1, 32)], lambda x: get(FullyConnectedBlocks)(x, *blocks, attrs=BlockAttrs(16, 4))) == ()


def test_all_of_it() -> None:
    said = of([(1, 3, 8, 8)], lambda x: relax.op.nn.conv2d(x, weights(5, 3, 3, 3)))
    assert said == (
        f"all {5 * 36 * 27:,} multiply-accumulates are in float; quantised to int8, its float weights would take "
        f"135 bytes of flash, and what kernels pad, instead of 540: {HOW}",
    )


def test_by_format() -> None:
    (said,) = of([(2, 3)], lambda x: relax.op.matmul(x, weights(3, 4)), "torch.export")
    assert said.endswith(
        ": uaccel quantize MODEL.pt2 --calibration DATA.npz does it, or PT2E before exporting (torchao's prepare_pt2e)",
    )
    assert said.startswith("all 24 multiply-accumulates are in float; ")


def test_weights_without_multiplications_and_the_reverse() -> None:
    assert of([(4,)], lambda x: relax.op.add(x, weights(4))) == (
        "it computes in float; quantised to int8, its float weights would take 4 bytes of flash, and what kernels pad, "
        f"instead of 16: {HOW}",
    )
    assert of([(2, 3), (3, 2)], relax.op.matmul) == (
        f"all 12 multiply-accumulates are in float; quantised to int8, it would compute in integers: {HOW}",
    )
    assert of([(4,)], lambda x: relax.op.multiply(x, relax.const(2.0, "float32"))) == ()


def test_a_weight_that_is_read_twice_is_there_once() -> None:
    shared = weights(3, 3)
    (said,) = of([(2, 3)], lambda x: relax.op.matmul(relax.op.matmul(x, shared), shared))
    assert "instead of 36:" in said


def test_transposed_convolutions_count() -> None:
    (said,) = of([(1, 3, 4, 4)], lambda x: relax.op.nn.conv2d_transpose(x, weights(3, 5, 2, 2)))
    assert said.startswith(f"all {3 * 16 * 5 * 4:,} multiply-accumulates")
