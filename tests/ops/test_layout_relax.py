"""The same kernels for modules that come from elsewhere: Relax's own operators, lowered as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from support.device.hostlib import Array, HostModel
from support.models.relax_modules import Build, compiled
from support.oracle.exactness import assert_same
from uaccel.ops.operator import constant
from uaccel.pipeline import Compiled
from uaccel.tvm_api import relax
from uaccel.tvm_api.executor import Executor

INT8S = np.arange(-30, 30, dtype=np.int8)
TABLE = INT8S.reshape(10, 6)
FLOATS = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4)


def functions(found: Compiled) -> list[str]:
    return [call.function for layer in found.program.layers for call in layer.kernel.calls]


def check(inputs: Sequence[Array], build: Build, expected: Sequence[Array]) -> Compiled:
    found = compiled(inputs, build)
    meant = Executor(found.model.module).run(inputs)
    for i, (got, meaning, wanted) in enumerate(zip(HostModel(found)(*inputs), meant, expected, strict=True)):
        assert_same(meaning, wanted, f"output {i} of the exact meaning")
        assert_same(got, wanted, f"output {i} of the generated C")
    return found


def embedding(x: Any) -> Any:
    return relax.op.take(constant(TABLE), x, axis=0, mode="clip")


CASES: dict[str, tuple[list[Array], Build, Array, list[str]]] = {
    "take, indices of 32 bits": (
        [np.array([[9, 0], [3, 3]], np.int32)],
        embedding,
        TABLE[[[9, 0], [3, 3]]],
        ["uaccel_gather_s32"],
    ),
    "take, indices of 64 bits": (
        [np.array([1, 7, 2], np.int64)],
        embedding,
        TABLE[[1, 7, 2]],
        ["uaccel_gather_s64"],
    ),
    "take, indices outside": (
        [np.array([-1, 10, -(2**31), 2**31 - 1], np.int32)],
        embedding,
        TABLE[[0, 9, 0, 9]],
        ["uaccel_gather_s32"],
    ),
    "take, wide indices outside": (
        [np.array([-1, 10, -(2**63), 2**63 - 1], np.int64)],
        embedding,
        TABLE[[0, 9, 0, 9]],
        ["uaccel_gather_s64"],
    ),
    "take without an axis": (
        [INT8S],
        lambda x: relax.op.take(x, constant(np.array([23, 0, 5, 11, 4, 4, 9, 1, 2, 8], np.int32)), mode="clip"),
        INT8S[[23, 0, 5, 11, 4, 4, 9, 1, 2, 8]],
        ["uaccel_gather_s32"],
    ),
    "gather by vectors": (
        [FLOATS, np.array([[1, 2], [0, 0], [0, 2]], np.int64)],
        relax.op.gather_nd,
        FLOATS[[1, 0, 0], [2, 0, 2]],
        ["uaccel_gather_nd"],
    ),
    "slice of named axes": (
        [FLOATS],
        lambda x: relax.op.strided_slice(x, axes=[-1, 1], begin=[-1, -99], end=[-99, 2], strides=[-3, 1]),
        FLOATS[:, :2, ::-3],
        ["uaccel_move"],
    ),
    "slice without strides": (
        [FLOATS],
        lambda x: relax.op.strided_slice(x, axes=[2], begin=[1], end=[3]),
        FLOATS[..., 1:3],
        ["uaccel_move"],
    ),
    "transpose without axes": ([FLOATS], relax.op.permute_dims, FLOATS.T, ["uaccel_move"]),
    "transpose of a constant": (
        [INT8S[:6]],
        lambda x: relax.op.concat([relax.op.permute_dims(constant(TABLE[:, :1])), relax.op.reshape(x, (1, 6))], 1),
        np.concatenate([TABLE[:, 0], INT8S[:6]])[None],
        ["uaccel_copy", "uaccel_copy", "uaccel_copy"],
    ),
    "reshape of a constant": (
        [INT8S],
        lambda x: relax.op.concat([x, relax.op.reshape(constant(TABLE), (60,))], 0),
        np.concatenate([INT8S, INT8S]),
        ["uaccel_copy", "uaccel_copy", "uaccel_copy"],
    ),
    "reversed constant": (
        [INT8S[:6]],
        lambda x: relax.op.stack([x, relax.op.flip(constant(INT8S[:6]), 0)], 1),
        np.stack([INT8S[:6], INT8S[5::-1]], 1),
        ["uaccel_copy", "uaccel_move", "uaccel_move"],
    ),
    "repeated constant": (
        [TABLE[:2]],
        lambda x: relax.op.concat([x, relax.op.broadcast_to(constant(INT8S[:6]), (3, 6))], 0),
        np.concatenate([TABLE[:2], np.broadcast_to(INT8S[:6], (3, 6))]),
        ["uaccel_move", "uaccel_copy", "uaccel_copy"],
    ),
    "tile by more axes": (
        [FLOATS[0, 0]],
        lambda x: relax.op.tile(x, (2, 1, 3)),
        np.tile(FLOATS[0, 0], (2, 1, 3)),
        ["uaccel_move"],
    ),
    "tile by fewer axes": (
        [FLOATS],
        lambda x: relax.op.tile(x, (2,)),
        np.tile(FLOATS, (2,)),
        ["uaccel_move"],
    ),
    "split in sections": (
        [FLOATS],
        lambda x: relax.TupleGetItem(relax.op.split(x, 2, axis=-1), 1),
        FLOATS[..., 2:],
        ["uaccel_move", "uaccel_move"],
    ),
    "pad with minus infinity": (
        [FLOATS[0]],
        lambda x: relax.op.nn.pad(x, [1, 0, 0, 2], "constant", float("-inf")),
        np.pad(FLOATS[0], [(1, 0), (0, 2)], constant_values=-np.inf),
        ["uaccel_fill", "uaccel_move"],
    ),
    "pad with minus zero": (
        [FLOATS[0, 0]],
        lambda x: relax.op.nn.pad(x, [1, 1], "constant", -0.0),
        np.pad(FLOATS[0, 0], 1, constant_values=-0.0),
        ["uaccel_fill", "uaccel_copy"],
    ),
}


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", CASES)
def test_exact(name: str) -> None:
    inputs, build, expected, calls = CASES[name]
    found = check(inputs, build, [np.ascontiguousarray(expected)])
    assert functions(found) == calls


def test_what_the_kernels_cannot_do_is_left_to_the_fallback() -> None:
    everywhere = np.arange(16, dtype=np.int8).reshape(2, 2, 2, 2)
    cases: list[tuple[Build, Array]] = [
        (
            lambda x: relax.op.nn.pad(x, [0, 0, 0, 0, 1, 1, 1, 1], "reflect"),
            np.pad(everywhere, [(0, 0)] * 2 + [(1, 1)] * 2, "reflect"),
        ),
        (lambda x: relax.op.tile(x, (2, 2, 2, 2)), np.tile(everywhere, (2, 2, 2, 2))),
    ]
    for build, expected in cases:
        found = check([everywhere], build, [expected])
        assert [layer.kernel.family for layer in found.program.layers] == ["tir"]


def test_an_index_far_outside_reads_nothing_outside() -> None:
    """What the vectors mean wraps in 64 bits; some slice of the tensor is taken whatever it is."""
    found = compiled([FLOATS, np.zeros((3, 2), np.int64)], relax.op.gather_nd)
    wild = np.array([[2**62, 2**62], [-1, -(2**63)], [1, 2**63 - 1]], np.int64)
    (output,) = HostModel(found)(FLOATS, wild)
    slices = FLOATS.reshape(6, 4)
    assert all(any((slice_ == row).all() for slice_ in slices) for row in output)
