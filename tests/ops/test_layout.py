"""Operators that move bytes, every element type: generated C = exact meaning = TFLite Micro, or LiteRT for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from support.device.hostlib import HostModel, compile_bytes, compile_c, write_sources
from support.models import layout_ops as ops
from support.models.many import Row, many
from support.oracle.exactness import assert_exact, assert_exact_random, assert_same
from support.oracle.oracle import LiteRt, random_inputs
from support.oracle.sanitized import assert_clean
from uaccel.pipeline import Compiled
from uaccel.tvm_api.executor import Executor

IMAGE = (2, 4, 6, 8)
INDICES = ops.activation((1, 3), "int32")

# For each row the element types that TFLite Micro has a kernel for; LiteRT judges the others, where it has one.
Rows = Mapping[str, tuple[Callable[[str], Row], str]]
FOUR = "int8 int16 int32 float32"
TWO = "int8 float32"
EVERY = "int8 uint8 int16 int32 int64 float32 bool"
FIVE = "int8 int16 int32 int64 float32"
SIX = FIVE + " bool"
TYPES = EVERY.split()

NO_KERNEL_ANYWHERE = {
    "SPLIT": ["bool"],
    "SPLIT_V": ["bool"],
    "PACK": ["bool"],
    "UNPACK": ["int64"],
    "SPACE_TO_DEPTH": ["int16", "bool"],
    "DEPTH_TO_SPACE": ["int16", "bool"],
}

PADDING: Rows = {
    "pad an image": (lambda t: ops.pad((1, 4, 5, 3), [(0, 0), (1, 2), (2, 1), (0, 0)], t), FOUR),
    "pad before alone": (lambda t: ops.pad((3, 4), [(1, 0), (0, 0)], t), FOUR),
    "pad after alone": (lambda t: ops.pad((3, 4), [(0, 0), (0, 3)], t), FOUR),
    "pad every axis": (lambda t: ops.pad((2, 1, 3, 2, 2), [(1, 1), (1, 0), (0, 2), (1, 1), (2, 1)], t), FOUR),
    "pad by nothing": (lambda t: ops.pad((2, 3), [(0, 0), (0, 0)], t), FOUR),
    "pad with a value": (lambda t: ops.pad((2, 3), [(1, 1), (1, 1)], t, 1), FOUR),
    "pad a row with a value": (lambda t: ops.pad((5,), [(2, 3)], t, 0), FOUR),
    "reflect": (lambda t: ops.mirror_pad((3, 4), [(2, 1), (3, 3)], "REFLECT", t), TWO),
    "reflect an image": (
        lambda t: ops.mirror_pad((1, 3, 4, 2), [(0, 0), (1, 1), (2, 2), (0, 0)], "REFLECT", t),
        TWO,
    ),
    "mirror with the edge": (lambda t: ops.mirror_pad((3, 4), [(3, 1), (0, 4)], "SYMMETRIC", t), TWO),
    "mirror one side": (lambda t: ops.mirror_pad((2, 3), [(0, 0), (2, 0)], "SYMMETRIC", t), TWO),
}

JOINING: Rows = {
    "concatenate rows": (lambda t: ops.concatenation((2, 3), [1, 2, 1], 0, t), SIX),
    "concatenate columns": (lambda t: ops.concatenation((2, 3), [1, 4], 1, t), SIX),
    "concatenate channels": (lambda t: ops.concatenation((1, 3, 2, 1), [3, 1, 2], -1, t), SIX),
    "concatenate in the middle": (lambda t: ops.concatenation((2, 1, 3, 2), [2, 3], 1, t), SIX),
    "concatenate rank 5": (lambda t: ops.concatenation((2, 1, 2, 1, 3), [2, 1], 3, t), SIX),
    "concatenate ten": (lambda t: ops.concatenation((3, 1), [1] * 10, 1, t), SIX),
    "concatenate one": (lambda t: ops.concatenation((2, 3), [3], 1, t), SIX),
    "concatenate with a constant": (lambda t: ops.concatenation((2, 3), [2, 2, 1], 1, t, [1]), SIX),
    "concatenate to a constant": (lambda t: ops.concatenation((2, 3), [2, 2], 0, t, [0]), SIX),
    "pack in front": (lambda t: ops.pack((2, 3), 3, 0, t), FIVE),
    "pack behind": (lambda t: ops.pack((2, 3), 2, -1, t), FIVE),
    "pack in the middle": (lambda t: ops.pack((2, 3, 2), 2, 1, t), FIVE),
    "pack scalars": (lambda t: ops.pack((), 3, 0, t), FIVE),
    "pack one": (lambda t: ops.pack((2,), 1, 0, t), FIVE),
}

TAKING_APART: Rows = {
    "split rows": (lambda t: ops.split((4, 3), 2, 0, t), FOUR),
    "split channels": (lambda t: ops.split((1, 2, 2, 6), 3, -1, t), FOUR),
    "split in the middle": (lambda t: ops.split((2, 4, 3), 4, 1, t), FOUR),
    "split in one": (lambda t: ops.split((2, 3), 1, 1, t), FOUR),
    "split unevenly": (lambda t: ops.split_v((2, 7), [1, 4, 2], 1, t), FOUR),
    "split what is left": (lambda t: ops.split_v((2, 7, 2), [3, -1], 1, t), FOUR),
    "unpack rows": (lambda t: ops.unpack((3, 2), 0, t), FOUR),
    "unpack columns": (lambda t: ops.unpack((2, 3), -1, t), FOUR),
    "unpack in the middle": (lambda t: ops.unpack((2, 3, 2), 1, t), FOUR),
    "unpack one": (lambda t: ops.unpack((2, 1, 3), 1, t), FOUR),
    "unpack scalars": (lambda t: ops.unpack((3,), 0, t), FOUR),
}

SLICING: Rows = {
    "slice rows": (lambda t: ops.slice_part((5, 3), [1, 0], [3, 3], t), FOUR + " bool"),
    "slice to the end": (lambda t: ops.slice_part((4, 5), [1, 2], [-1, -1], t), FOUR + " bool"),
    "slice rank 5": (lambda t: ops.slice_part((2, 3, 2, 3, 2), [0, 1, 1, 0, 0], [2, 2, 1, 2, 2], t), FOUR + " bool"),
    "slice of everything": (lambda t: ops.slice_part((2, 3), [0, 0], [2, 3], t), FOUR + " bool"),
    "every second": (lambda t: ops.strided_slice(IMAGE, [slice(None), slice(1, None, 2)] + [slice(None)] * 2, t), FOUR),
    "backwards": (lambda t: ops.strided_slice((4, 5), [slice(None, None, -1), slice(None)], t), FOUR + " bool"),
    "backwards from a place": (lambda t: ops.strided_slice((4, 7), [slice(None), slice(5, 0, -2)], t), FOUR + " bool"),
    "backwards to the front": (lambda t: ops.strided_slice((7,), [slice(-2, -9, -3)], t), FOUR + " bool"),
    "bounds far outside": (lambda t: ops.strided_slice((4, 3), [slice(-99, 99, 3), slice(0, 3)], t), FOUR + " bool"),
    "counted from the end": (lambda t: ops.strided_slice((6,), [slice(-4, -1)], t), FOUR + " bool"),
    "one row": (lambda t: ops.strided_slice((4, 3), [2, slice(None)], t), FOUR + " bool"),
    "last row": (lambda t: ops.strided_slice((4, 3), [-1, slice(None)], t), FOUR + " bool"),
    "one column": (lambda t: ops.strided_slice((4, 3), [slice(None), 1], t), FOUR + " bool"),
    "one element": (lambda t: ops.strided_slice((4, 3), [1, 2], t), FOUR + " bool"),
    "named axes alone": (lambda t: ops.strided_slice((4, 3, 2), [slice(1, 3)], t), ""),
    "ellipsis": (lambda t: ops.strided_slice((2, 3, 4), [..., slice(0, 4, 2)], t), ""),
    "ellipsis between": (lambda t: ops.strided_slice((2, 3, 2, 4), [1, ..., slice(1, None)], t), ""),
    "new axis": (lambda t: ops.strided_slice((2, 3), [None, slice(0, 1), slice(None)], t), ""),
    "new axis and ellipsis": (lambda t: ops.strided_slice((2, 3, 2), [slice(0, 1), None, ..., 1], t), ""),
}

REORDERING: Rows = {
    "transpose a matrix": (lambda t: ops.transpose((3, 5), [1, 0], t), "int8 int16 float32"),
    "channels first": (lambda t: ops.transpose((2, 3, 4, 5), [0, 3, 1, 2], t), "int8 int16 float32"),
    "channels last": (lambda t: ops.transpose((1, 5, 3, 4), [0, 2, 3, 1], t), "int8 int16 float32"),
    "swap in front": (lambda t: ops.transpose((3, 2, 4, 2), [1, 0, 2, 3], t), "int8 int16 float32"),
    "transpose rank 5": (lambda t: ops.transpose((2, 3, 2, 3, 2), [4, 2, 0, 3, 1], t), "int8 int16 float32"),
    "transpose rank 6": (lambda t: ops.transpose((2, 3, 2, 3, 2, 2), [5, 3, 1, 0, 2, 4], t), ""),
    "transpose of units": (lambda t: ops.transpose((1, 3, 1, 4), [1, 2, 0, 3], t), "int8 int16 float32"),
    "transpose nothing": (lambda t: ops.transpose((2, 3, 4), [0, 1, 2], t), "int8 int16 float32"),
    "reverse rows": (lambda t: ops.reverse((4, 3), [0], t), EVERY),
    "reverse columns": (lambda t: ops.reverse((4, 3), [-1], t), EVERY),
    "reverse both": (lambda t: ops.reverse((2, 3, 4), [1, 2], t), EVERY),
    "space to depth": (lambda t: ops.space_to_depth(IMAGE, 2, t), TWO),
    "space to depth, one channel": (lambda t: ops.space_to_depth((1, 6, 3, 1), 3, t), TWO),
    "depth to space": (lambda t: ops.depth_to_space(IMAGE, 2, t), TWO),
    "depth to space, one channel": (lambda t: ops.depth_to_space((1, 2, 2, 9), 3, t), TWO),
    "space to batch": (lambda t: ops.space_to_batch(IMAGE, [2, 3], [(0, 0), (0, 0)], t), TWO),
    "space to batch, padded": (lambda t: ops.space_to_batch((2, 3, 4, 2), [2, 2], [(1, 2), (0, 2)], t), ""),
    "space to batch, rank 3": (lambda t: ops.space_to_batch((2, 4, 3), [2], [(0, 0)], t), TWO),
    "batch to space": (lambda t: ops.batch_to_space((8, 2, 3, 2), [2, 2], [(0, 0), (0, 0)], t), TWO),
    "batch to space, cropped": (lambda t: ops.batch_to_space((6, 2, 3, 2), [3, 2], [(1, 2), (1, 0)], t), TWO),
    "batch to space, rank 3": (lambda t: ops.batch_to_space((4, 2, 3), [2], [(1, 0)], t), TWO),
}

PICKING: Rows = {
    "gather rows": (lambda t: ops.gather((5, 3), [4, 0, 0, 3], 0, t), TWO),
    "gather columns": (lambda t: ops.gather((2, 5, 2), [3, 1, 4, 1, 0, 2], 1, t), TWO),
    "gather from the end": (lambda t: ops.gather((2, 5), [1, 3], -1, t), TWO),
    "gather neighbours": (lambda t: ops.gather((2, 7, 2), [2, 3, 4, 5], 1, t), TWO),
    "gather backwards": (lambda t: ops.gather((7, 2), [6, 4, 2, 0], 0, t), TWO),
    "gather everything": (lambda t: ops.gather((3, 2), [0, 1, 2], 0, t), TWO),
    "gather by a matrix": (lambda t: ops.gather((5, 2), [[0, 4, 1], [1, 3, 1]], 0, t), TWO),
    "gather one": (lambda t: ops.gather((4, 3), 2, 0, t), TWO),
    "gather elements": (lambda t: ops.gather_nd((3, 4), [[0, 3], [2, 1], [2, 1]], t), TWO),
    "gather slices": (lambda t: ops.gather_nd((3, 4, 2), [[[2], [0]], [[1], [2]]], t), TWO),
    "gather slices by two": (lambda t: ops.gather_nd((3, 4, 2), [[2, 1], [0, 0], [1, 3], [0, 1], [2, 2]], t), TWO),
}

REPEATING: Rows = {
    "broadcast a row": (lambda t: ops.broadcast_to((1, 3), (4, 3), t), EVERY),
    "broadcast a column": (lambda t: ops.broadcast_to((4, 1), (4, 3), t), EVERY),
    "broadcast to a higher rank": (lambda t: ops.broadcast_to((2, 1), (3, 2, 2), t), EVERY),
    "broadcast one": (lambda t: ops.broadcast_to((1,), (2, 3), t), EVERY),
    "broadcast nothing": (lambda t: ops.broadcast_to((2, 3), (2, 3), t), EVERY),
    "fill with an input": (lambda t: ops.fill((2, 3), t), "int8 int32 float32"),
    "tile rows": (lambda t: ops.tile((2, 3), [3, 1], t), ""),
    "tile columns": (lambda t: ops.tile((2, 3), [1, 2], t), ""),
    "tile all axes": (lambda t: ops.tile((2, 1, 3), [2, 3, 2], t), ""),
}

RESHAPING: Rows = {
    "reshape by a tensor": (lambda t: ops.reshape_by("RESHAPE", (2, 6), [3, -1], (3, 4), t), EVERY),
    "reshape by an option": (lambda t: ops.reshape("RESHAPE", (2, 6), (12,), t, new_shape=[12]), EVERY),
    "reshape to a scalar": (lambda t: ops.reshape("RESHAPE", (1, 1), (), t), EVERY),
    "squeeze one axis": (lambda t: ops.reshape("SQUEEZE", (1, 3, 1), (1, 3), t, squeeze_dims=[-1]), EVERY),
    "squeeze all": (lambda t: ops.reshape("SQUEEZE", (1, 3, 1), (3,), t), EVERY),
    "expand in front": (lambda t: ops.reshape_by("EXPAND_DIMS", (2, 3), 0, (1, 2, 3), t), "int8 int16 float32"),
    "expand behind": (lambda t: ops.reshape_by("EXPAND_DIMS", (2, 3), -1, (2, 3, 1), t), "int8 int16 float32"),
}

FAMILIES: Mapping[str, Rows] = {
    "padding": PADDING,
    "joining": JOINING,
    "taking apart": TAKING_APART,
    "slicing": SLICING,
    "reordering": REORDERING,
    "picking": PICKING,
    "repeating": REPEATING,
    "reshaping": RESHAPING,
}


def rows(dtype: str, *, tflm: bool) -> dict[str, Row]:
    table = {name: entry for family in FAMILIES.values() for name, entry in family.items()}
    chosen = {name: make(dtype) for name, (make, types) in table.items() if (dtype in types.split()) == tflm}
    return {name: row for name, row in chosen.items() if dtype not in NO_KERNEL_ANYWHERE.get(row.operator, [])}


def assert_as_litert(data: bytes, runs: int = 3) -> Compiled:
    """For what TFLite Micro has no kernel for."""
    compiled = compile_bytes(data)
    reference, host, executor = LiteRt(data), HostModel(compiled), Executor(compiled.stages["import"])
    for values in random_inputs(data, 0, runs):
        expected = reference.run(values)
        for spec, got, meant, wanted in zip(
            compiled.model.signature.outputs, host(*values), executor.run(values), expected, strict=True
        ):
            assert_same(got, wanted.reshape(got.shape), f"{spec.name}: generated C")
            assert_same(meant, wanted.reshape(meant.shape), f"{spec.name}: exact meaning")
    return compiled


@pytest.mark.slow
@pytest.mark.parametrize("dtype", TYPES)
def test_exact(dtype: str) -> None:
    assert_exact_random(many(rows(dtype, tflm=True)), runs=3)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "dtype", [pytest.param(t, marks=[pytest.mark.long] if t in ("uint8", "int64") else []) for t in TYPES]
)
def test_as_litert_where_tflite_micro_has_no_kernel(dtype: str) -> None:
    assert_as_litert(many(rows(dtype, tflm=False)))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_clean_under_sanitizers(dtype: str) -> None:
    assert_clean(many(rows(dtype, tflm=True)), runs=1)


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_warning(compiler: str, tmp_path: Path) -> None:
    sources = write_sources(compile_bytes(many(rows("float32", tflm=True))), tmp_path)
    flags = ("-shared", "-fPIC", "-O2", "-Wshadow", "-Wcast-qual", "-Wcast-align")
    compile_c(tmp_path, sources, tmp_path / "model.so", compiler=compiler, flags=flags)


def test_every_operator_has_a_kernel() -> None:
    """Nothing of this family is left to C from TIR."""
    for tflm in (True, False):
        program = compile_bytes(many(rows("int8", tflm=tflm))).program
        assert {layer.name: layer.kernel.family for layer in program.layers if layer.definition} == {}
        assert len(program.layers) > 8


@pytest.mark.parametrize(
    ("row", "functions"),
    [
        (ops.transpose((2, 3, 4), [0, 1, 2]), ["uaccel_copy"]),
        (ops.transpose((1, 3, 1, 4), [1, 2, 0, 3]), ["uaccel_copy"]),
        (ops.slice_part((4, 5), [1, 0], [2, 5]), ["uaccel_copy"]),
        (ops.concatenation((2, 3), [1, 2], 0), ["uaccel_copy", "uaccel_copy"]),
        (ops.concatenation((2, 3), [1, 2], 1), ["uaccel_move", "uaccel_move"]),
        (ops.pad((2, 3), [(1, 1), (0, 0)]), ["uaccel_set", "uaccel_copy"]),
        (ops.pad((2, 3), [(1, 1), (0, 0)], "int16", 300), ["uaccel_fill", "uaccel_copy"]),
        (ops.gather((7, 2), [6, 4, 2, 0], 0), ["uaccel_move"]),
        (ops.gather((7, 2), [6, 0, 1, 5, 3, 2, 4, 1, 0], 0), ["uaccel_gather_s32"]),
    ],
    ids=str,
)
def test_what_moves_contiguous_bytes_is_a_plain_copy(row: Row, functions: list[str]) -> None:
    program = compile_bytes(many({"row": row})).program
    assert [call.function for layer in program.layers for call in layer.kernel.calls] == functions


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_gather_by_indices_of_run_time(dtype: str) -> None:
    row = ops.gather((2, 5, 3), [[0, 1, 2]], 1, dtype)
    _check_picks(Row(row.operator, [row.inputs[0], INDICES], row.outputs, row.options), [[4, 0, 2], [1, 1, 1]])


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_gather_slices_by_indices_of_run_time(dtype: str) -> None:
    row = ops.gather_nd((5, 3), [[0]], dtype)
    _check_picks(Row(row.operator, [row.inputs[0], ops.activation((1, 1), "int32")], row.outputs), [[4], [0]])


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_gather_elements_by_vectors_of_run_time(dtype: str) -> None:
    """An entry may be negative where the vector means an element all the same."""
    row = ops.gather_nd((5, 3, 2), [[0, 0, 0]], dtype)
    picks = [[4, 2, 1], [0, 0, 0], [1, -1, 1], [2, 0, 3]]
    _check_picks(Row(row.operator, [row.inputs[0], INDICES], row.outputs), picks)


def _check_picks(row: Row, picks: list[list[int]]) -> None:
    data = many({"row": row})
    values = random_inputs(data, 0, 1)[0][0]
    assert_exact(data, [[values, np.array([pick], np.int32)] for pick in picks])
