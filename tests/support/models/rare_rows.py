"""One-operator models of operators that the tflite-micro wheel lacks, on every type of element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from support.models.many import Row
from support.models.reference_rows import SHAPE, Given, Make, numbers, tensor
from support.models.single_op import Activation, Constant
from support.models.tflite_writer import OptionValue

Part = tuple[int, ...] | Activation | Constant
"""A shape stands for a tensor of the row's type."""
Form = tuple[Sequence[Part], Sequence[Part], Mapping[str, OptionValue]]

COUNT, ONE_FLOAT = Activation((), "int32"), Activation((), "float32")
BOXES = (Activation((6, 4), "float32"), Activation((6,), "float32"), numbers(3), ONE_FLOAT, ONE_FLOAT)
THREE = Activation((3,), "int32")
CUBE: Mapping[str, OptionValue] = {
    **{f"stride_{side}": 1 for side in "dhw"},
    **{f"dilation_{side}_factor": 1 for side in "dhw"},
    "padding": "SAME",
}
EACH = ("SIGN", "GELU", "RELU_N1_TO_1", "RELU_0_TO_1", "LOCAL_RESPONSE_NORMALIZATION", "BITCAST", "REAL", "IMAG")
PAIRS = ("ATAN2", "POW", "BITWISE_XOR", "RIGHT_SHIFT")
FORMS: Mapping[str, Form] = {
    **{name: ([SHAPE], [SHAPE], {}) for name in (*EACH, "COMPLEX_ABS")},
    **{name: ([SHAPE, SHAPE], [SHAPE], {}) for name in PAIRS},
    **{name: ([SHAPE, numbers([1, 2])], [(1, 8)], {}) for name in ("REDUCE_PROD", "REDUCE_ANY")},
    **{name: ([numbers([2, 3])], [(2, 3)], {}) for name in ("RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM")},
    "FAKE_QUANT": ([SHAPE], [SHAPE], {"min": -1.0, "max": 1.0, "num_bits": 8}),
    "CONV_3D": ([(1, 4, 5, 6, 2), Constant(np.ones((2, 2, 2, 2, 3), np.float32))], [(1, 4, 5, 6, 3)], CUBE),
    "TOPK_V2": ([SHAPE, numbers(3)], [(1, 4, 6, 3), Activation((1, 4, 6, 3), "int32")], {}),
    "TILE": ([SHAPE, numbers([1, 2, 1, 1])], [(1, 8, 6, 8)], {}),
    "SELECT": ([Activation(SHAPE, "bool"), SHAPE, SHAPE], [SHAPE], {}),
    "REVERSE_SEQUENCE": ([SHAPE, Activation((1,), "int32")], [SHAPE], {"seq_dim": 1, "batch_dim": 0}),
    "ONE_HOT": ([Activation((4,), "int32"), numbers(5), (), ()], [(4, 5)], {"axis": -1}),
    "SCATTER_ND": ([numbers([[1], [3]]), (2, 4), numbers([5, 4])], [(5, 4)], {}),
    "SEGMENT_SUM": ([(4, 3), numbers([0, 0, 1, 1])], [(2, 3)], {}),
    "MATRIX_DIAG": ([(2, 3)], [(2, 3, 3)], {}),
    "MATRIX_SET_DIAG": ([(2, 3, 3), (2, 3)], [(2, 3, 3)], {}),
    "BUCKETIZE": ([SHAPE], [Activation(SHAPE, "int32")], {}),
    "RFFT2D": ([(4, 8), numbers([4, 8])], [(4, 5)], {}),
    "RANGE": ([(), (), ()], [(6,)], {}),
    "UNIQUE": ([(6,)], [(6,), Activation((6,), "int32")], {"idx_out_type": 2}),
    "WHERE": ([(6,)], [Activation((6, 1), "int64")], {}),
    "MULTINOMIAL": ([(1, 6), numbers(3)], [Activation((1, 3), "int64")], {}),
    "NON_MAX_SUPPRESSION_V4": (BOXES, [THREE, COUNT], {}),
    "NON_MAX_SUPPRESSION_V5": ([*BOXES, ONE_FLOAT], [THREE, Activation((3,), "float32"), COUNT], {}),
    "SPARSE_TO_DENSE": ([numbers([1, 3]), numbers([6]), (2,), ()], [(6,)], {}),
}
DILATE: Form = ([(2, 3, 2), numbers([2, 1, 3]), ()], [(3, 3, 4)], {})
"""Apart from the others: LiteRT runs on for minutes where it is broken."""


def rare_makers() -> dict[str, Make]:
    """By the operator's name."""
    return {name: partial(row_of, name, form) for name, form in FORMS.items()}


def row_of(name: str, form: Form, dtype: str) -> Row:
    inputs, outputs, options = form
    given: list[Given] = [tensor(dtype, part) if isinstance(part, tuple) else part for part in inputs]
    return Row(name, given, [_result(part, dtype) for part in outputs], options)


def _result(part: Part, dtype: str) -> Activation:
    assert not isinstance(part, Constant)
    return tensor(dtype, part) if isinstance(part, tuple) else part
