"""What the operators that move bytes refuse, and in which words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.models import layout_ops as ops
from support.models.many import Row
from support.models.single_op import Activation, Constant
from support.oracle.refusal import refusal


def with_inputs(row: Row, **changed: Any) -> Row:
    """The row with other inputs; ``second=x`` replaces input 1."""
    position = {"first": 0, "second": 1, "third": 2}
    inputs = [*row.inputs, None][: max(len(row.inputs), *(position[name] + 1 for name in changed))]
    for name, given in changed.items():
        inputs[position[name]] = given
    return replace(row, inputs=inputs)


def with_output(row: Row, *shape: int, dtype: str = "int8") -> Row:
    return replace(row, outputs=[ops.activation(shape, dtype)])


PAD = ops.pad((2, 3), [(0, 1), (0, 0)])
MIRROR = ops.mirror_pad((2, 3), [(0, 1), (0, 0)], "REFLECT")
JOIN = ops.concatenation((2, 3), [1, 2], 0)
PACK = ops.pack((2, 3), 2, 0)
SPLIT = ops.split((4, 3), 2, 0)
SPLIT_V = ops.split_v((4, 3), [1, 3], 0)
UNPACK = ops.unpack((2, 3), 0)
SLICE = ops.slice_part((4, 3), [1, 0], [2, 3])
STRIDED = ops.strided_slice((4, 3), [slice(1, 3), slice(0, 3)])
TRANSPOSE = ops.transpose((2, 3), [1, 0])
REVERSE = ops.reverse((2, 3), [0])
GATHER = ops.gather((4, 3), [0, 2], 0)
GATHER_ND = ops.gather_nd((4, 3), [[0, 2]])
TO_DEPTH = ops.space_to_depth((1, 4, 4, 2), 2)
TO_SPACE = ops.depth_to_space((1, 2, 2, 8), 2)
TO_BATCH = ops.space_to_batch((1, 4, 4, 2), [2, 2], [(0, 0), (0, 0)])
FROM_BATCH = ops.batch_to_space((4, 2, 2, 2), [2, 2], [(0, 0), (0, 0)])
BROADCAST = ops.broadcast_to((1, 3), (2, 3))
FILL = ops.fill((2, 3), value=5)
TILE = ops.tile((2, 3), [2, 1])
RESHAPE = ops.reshape("RESHAPE", (2, 3), (6,), new_shape=[6])

ALIKE = "scale 0.25, zero point -5"
OTHER = Constant(np.array([7], np.int8), (0.5,), (-5,))

REFUSALS: dict[str, tuple[Row, str]] = {
    "paddings of run time": (
        with_inputs(PAD, second=Activation((2, 2), "int32")),
        'paddings "row: input 1" is computed at run time; only constant paddings can be compiled',
    ),
    "paddings of another rank": (
        with_inputs(PAD, second=ops.numbers([[0, 1]])),
        "paddings have shape [1,2], wanted [2,2]",
    ),
    "paddings that are no integers": (
        with_inputs(PAD, second=Constant(np.zeros((2, 2), np.float32))),
        'paddings "row: input 1" is float32, wanted integers',
    ),
    "negative padding": (
        with_inputs(PAD, second=ops.numbers([[0, -1], [0, 0]])),
        "padding -1 is negative; use SLICE to cut",
    ),
    "padding that gives another shape": (
        with_output(PAD, 2, 3),
        'output "row: output 0" has shape [2,3], the inputs give [3,3]',
    ),
    "padding that converts": (
        with_output(PAD, 3, 3, dtype="int16"),
        'input "row: input 0" is int8 and output "row: output 0" is int16; this operator cannot convert',
    ),
    "padding value of another scale": (
        replace(with_inputs(PAD, third=OTHER), operator="PADV2"),
        f'padding value "row: input 2" (scale 0.5, zero point -5) and output ({ALIKE}) must be quantised alike',
    ),
    "padding value of another type": (
        replace(with_inputs(PAD, third=Constant(np.array([7], np.int16))), operator="PADV2"),
        'padding value "row: input 2" is int16, supported is int8',
    ),
    "padding value of run time": (
        replace(with_inputs(PAD, third=ops.activation((), "int8")), operator="PADV2"),
        'padding value "row: input 2" is computed at run time; only constant padding value can be compiled',
    ),
    "several padding values": (
        replace(with_inputs(PAD, third=ops.constant([1, 2], "int8")), operator="PADV2"),
        'padding value "row: input 2" has 2 elements, wanted 1',
    ),
    "padding value that is no number": (
        ops.pad((2,), [(1, 0)], "float32", float("nan")),
        "padding value nan has no exact form here",
    ),
    "padding value beyond a double": (
        ops.pad((2,), [(1, 0)], "int64", 2**53 + 1),
        "padding value 9007199254740993 has no exact form here",
    ),
    "zero point outside the type": (
        replace(PAD, outputs=[Activation((3, 3), "int8", 0.25, 200)]),
        "zero point 200 does not fit int8",
    ),
    "more mirror than tensor": (
        ops.mirror_pad((2, 3), [(2, 0), (0, 0)], "REFLECT"),
        "padding 2 of axis 0 is more than the 1 elements to mirror",
    ),
    "inputs that do not fit": (
        with_inputs(JOIN, second=ops.activation((2, 2), "int8")),
        'input "row: input 1" (int8 [2,2]) does not fit output int8 [3,3] along axis 0',
    ),
    "inputs of another scale": (
        with_inputs(JOIN, first=Activation((1, 3), "int8", 0.5, -5)),
        f'input "row: input 0" (scale 0.5, zero point -5) and output ({ALIKE}) must be quantised alike: '
        "this operator cannot rescale",
    ),
    "inputs of another zero point": (
        with_inputs(JOIN, second=Activation((2, 3), "int8", 0.25, 4)),
        f'input "row: input 1" (scale 0.25, zero point 4) and output ({ALIKE}) must be quantised alike: '
        "this operator cannot rescale",
    ),
    "joined and activated": (
        replace(JOIN, options={"axis": 0, "fused_activation": "RELU"}),
        "fused activation RELU is not supported; use none",
    ),
    "axis outside": (replace(JOIN, options={"axis": 2}), "axis 2 is outside a tensor of rank 2"),
    "packed tensors that differ": (
        with_inputs(PACK, second=ops.activation((3, 2), "int8")),
        'input "row: input 1" (int8 [3,2]) differs from int8 [2,3]',
    ),
    "parts that do not divide": (
        replace(SPLIT, inputs=[ops.numbers(1), ops.activation((4, 3), "int8")]),
        "int8 [4,3] has no 2 equal parts along axis 1",
    ),
    "axis of run time": (
        with_inputs(SPLIT, first=Activation((), "int32")),
        'axis "row: input 0" is computed at run time; only constant axis can be compiled',
    ),
    "sizes that are too much": (
        with_inputs(SPLIT_V, second=ops.numbers([2, 3])),
        "sizes [2, 3] are no parts of the 4 elements along axis 0",
    ),
    "sizes too few": (
        with_inputs(SPLIT_V, second=ops.numbers([4])),
        'sizes "row: input 1" has 1 entries, wanted 2',
    ),
    "too few outputs": (replace(UNPACK, outputs=UNPACK.outputs[:1]), "1 outputs for the 2 elements along axis 0"),
    "slice outside": (
        with_inputs(SLICE, second=ops.numbers([3, 0])),
        "begin 3 and size 2 lie outside the 4 elements of axis 0",
    ),
    "begin of run time": (
        with_inputs(STRIDED, second=Activation((2,), "int32")),
        'begin "row: input 1" is computed at run time; only constant begin can be compiled',
    ),
    "stride of nothing": (
        replace(STRIDED, inputs=[*STRIDED.inputs[:3], ops.numbers([0, 1])]),
        "stride 0 of axis 0 is not possible",
    ),
    "single element backwards": (
        replace(STRIDED, inputs=[*STRIDED.inputs[:3], ops.numbers([-1, 1])], options={"shrink_axis_mask": 1}),
        "stride -1 of axis 0 is not possible",
    ),
    "nothing left": (
        with_inputs(STRIDED, second=ops.numbers([3, 0])),
        "axis 0 has no elements from 3 to 3 with stride 1; nothing to compute",
    ),
    "element outside": (
        replace(with_inputs(STRIDED, second=ops.numbers([4, 0])), options={"shrink_axis_mask": 1}),
        "index 4 lies outside the 4 elements of axis 0",
    ),
    "more axes than there are": (
        replace(STRIDED, inputs=[STRIDED.inputs[0], *[ops.numbers([0, 0, 0])] * 3]),
        "begin names 3 axes of an input of rank 2",
    ),
    "ends counted from begins": (
        replace(STRIDED, options={"offset": True}),
        "ends that count from the begin are not supported",
    ),
    "no permutation": (
        with_inputs(TRANSPOSE, second=ops.numbers([0, 0])),
        "[0, 0] is no permutation of the axes of int8 [2,3]",
    ),
    "reversed axis outside": (with_inputs(REVERSE, second=ops.numbers([2])), "axis 2 is outside a tensor of rank 2"),
    "index outside": (
        with_inputs(GATHER, second=ops.numbers([0, 4])),
        "index 4 lies outside the 4 elements of the axis",
    ),
    "index below": (
        with_inputs(GATHER, second=ops.numbers([0, -1])),
        "index -1 lies outside the 4 elements of the axis",
    ),
    "batches of indices": (
        replace(GATHER, options={"axis": 1, "batch_dims": 1}),
        "the first 1 extents of int8 [4,3] and indices int32 [2] differ",
    ),
    "indices of another type": (
        with_inputs(GATHER, second=Constant(np.array([0, 2], np.int16))),
        'indices "row: input 1" is int16, supported is int32 or int64',
    ),
    "vector of indices outside": (
        with_inputs(GATHER_ND, second=ops.numbers([[4, 0]])),
        "an index lies outside the 4 elements of axis 0",
    ),
    "vector of indices too long": (
        with_inputs(GATHER_ND, second=ops.numbers([[0, 0, 0]])),
        "indices of 3 entries for an input of rank 2, at most 2 are possible",
    ),
    "blocks that do not fit": (
        replace(TO_DEPTH, options={"block_size": 3}),
        "int8 [1,4,4,2] has no whole blocks of 3 by 3",
    ),
    "blocks of no size": (replace(TO_DEPTH, options={"block_size": 0}), "block size 0 must be positive"),
    "channels without blocks": (
        replace(TO_SPACE, options={"block_size": 3}),
        "the 8 channels of int8 [1,2,2,8] hold no blocks of 3 by 3",
    ),
    "no image": (
        with_inputs(TO_DEPTH, first=ops.activation((4, 4, 2), "int8")),
        "input has rank 3, wanted 4 (NHWC)",
    ),
    "batch without blocks": (
        with_inputs(FROM_BATCH, second=ops.numbers([3, 2])),
        "the batch of int8 [4,2,2,2] holds no blocks of 3 by 2",
    ),
    "negative paddings": (
        with_inputs(TO_BATCH, third=ops.numbers([[0, -2], [0, 0]])),
        "paddings [0, -2, 0, 0] must not be negative",
    ),
    "cropped away": (
        with_inputs(FROM_BATCH, third=ops.numbers([[2, 2], [0, 0]])),
        "crops [(2, 2), (0, 0)] leave nothing of [1, 4, 4, 2]",
    ),
    "broadcast to another shape": (
        with_inputs(BROADCAST, second=ops.numbers([3, 3])),
        'output "row: output 0" has shape [2,3], the inputs give [3,3]',
    ),
    "no broadcast": (ops.broadcast_to((2,), (2, 3)), "int8 [2] cannot be broadcast to int8 [2,3]"),
    "several values to fill with": (
        with_inputs(FILL, second=ops.constant([1, 2], "int8")),
        'value "row: input 1" has 2 elements, wanted 1',
    ),
    "multiples of nothing": (
        with_inputs(TILE, second=ops.numbers([2, 0])),
        "multiples [2, 0] must be positive",
    ),
    "another number of elements": (with_output(RESHAPE, 5), "cannot reshape int8 [2,3] to int8 [5]"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal(name: str) -> None:
    row, reason = REFUSALS[name]
    assert refusal(row) == reason
