"""Gives shapes that fit each ONNX operator, and values of attributes that depend on them: what a schema cannot say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from support.models.operands import Operand, given, ints, stored, weights

OLDEST: Final = 13
SWITCH: Final = [None, 0, 1]


@dataclass(frozen=True, eq=False)
class Form:
    """Says how operands may look, and the values of attributes; None leaves one out.

    ``also`` restricts which operands a type may have, as ``{"T": ("float32",)}``; ``calm``: no NaN and extremes."""

    operands: tuple[Operand | None, ...]
    attributes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    outputs: int = 1
    since: int = OLDEST
    until: int = 99
    calm: bool = False


def form(
    *operands: Any, outputs: int = 1, since: int = OLDEST, until: int = 99, calm: bool = False, **attributes: Any
) -> Form:
    given = tuple(Operand(entry) if isinstance(entry, tuple) else entry for entry in operands)
    lists = {name: value if isinstance(value, list) else [value] for name, value in attributes.items()}
    return Form(given, lists, outputs, since, until, calm)


# Shapes that fit each operator. Those without a line take one operand, or two that are broadcast.

ONE: Final = (form((2, 3, 4)), form(()), form((1, 1)), form((40,)))
TWO: Final = (
    form((2, 3, 4), (2, 3, 4)),
    form((2, 3, 4), (3, 1)),
    form((1, 4), (3, 1)),
    form((), (2, 2)),
    form((5,), weights(1)),
)
MANY: Final = (form((2, 3), (2, 3)), form((2, 3), (3,), (2, 1)), form((2, 3)), form((1,), (), (2,), (2, 1)))
_AXES: Final = [[0], [1], [-1], [0, 2], [-3, 1], [0, 1, 2]]
REDUCED: Final = (
    form((2, 3, 4), axes=[None, *_AXES], until=17),
    form((3, 1), axes=[None, [1]], until=17),
    *(form((2, 3, 4), ints(*axes), since=18) for axes in _AXES),
    form((2, 3, 4), None, since=18),
    form((2, 3, 4), stored(np.zeros(0, np.int64)), since=18),
    form((3, 1), ints(1), since=18),
    form((), since=18),
)
_POOL: Final[dict[str, Any]] = {"strides": [None, [2, 2], [1, 2]], "auto_pad": [None, "NOTSET"]}
_SAME: Final[dict[str, Any]] = {"strides": [None, [2, 2], [3, 1]], "auto_pad": ["SAME_UPPER", "SAME_LOWER", "VALID"]}
IMAGE: Final = (1, 2, 7, 6)
POOLS: Final = (
    form(IMAGE, kernel_shape=[[3, 2]], pads=[None, [1, 0, 1, 1], [0, 1, 2, 0]], **_POOL),
    form(IMAGE, kernel_shape=[[2, 3]], **_SAME),
    form(
        (2, 3, 9),
        kernel_shape=[[3]],
        strides=[None, [2], [3]],
        pads=[None, [1, 1], [0, 2]],
    ),
    form(
        (1, 1, 4, 5, 3),
        kernel_shape=[[2, 2, 2]],
        strides=[None, [2, 1, 2]],
        pads=[None, [1, 0, 0, 0, 1, 1]],
    ),
)
DILATED: Final = form(
    IMAGE,
    kernel_shape=[[2, 2]],
    dilations=[[2, 1], [1, 3]],
    strides=[None, [2, 2]],
    pads=[None, [1, 0, 1, 1]],
)
WINDOWS: Final[dict[str, tuple[Form, ...]]] = {
    "AveragePool": (*POOLS, replace(DILATED, since=19)),
    "MaxPool": (
        *(replace(entry, attributes={**entry.attributes, "storage_order": [None, 0]}) for entry in (*POOLS, DILATED)),
        form(
            IMAGE,
            kernel_shape=[[3, 2]],
            pads=[None, [1, 0, 1, 1]],
            dilations=[None, [2, 1]],
            strides=[None, [2, 2]],
            outputs=2,
            ceil_mode=[None],
        ),
    ),
    "LpPool": (
        *(replace(entry, attributes={"p": [None, 1, 2, 3]} | dict(entry.attributes)) for entry in POOLS),
        replace(DILATED, since=18),
    ),
    "GlobalLpPool": (form((1, 3, 4, 5), p=[None, 1, 2, 3]), form((2, 3, 4))),
    **dict.fromkeys(
        ("GlobalAveragePool", "GlobalMaxPool"),
        (form((1, 3, 4, 5)), form((2, 3, 4)), form((1, 2, 3, 2, 2)), form((1, 1, 1, 1))),
    ),
    "MaxRoiPool": (
        form(
            (1, 2, 6, 6),
            stored([[0, 0, 0, 3, 4], [0, 1, 1, 5, 5]]),
            pooled_shape=[[2, 2], [1, 3]],
            spatial_scale=[None, 0.5],
        ),
    ),
    "Conv": (
        form(
            IMAGE,
            Operand((4, 2, 3, 2)),
            Operand((4,)),
            calm=True,
            kernel_shape=[None, [3, 2]],
            pads=[None, [1, 0, 2, 1]],
            strides=[None, [2, 1]],
            dilations=[None, [2, 1]],
            auto_pad=[None, "NOTSET"],
            group=[None, 1],
        ),
        form(
            IMAGE,
            weights(4, 2, 3, 2),
            calm=True,
            strides=[None, [2, 1], [1, 3]],
            dilations=[None, [1, 2]],
            auto_pad=["SAME_UPPER", "SAME_LOWER", "VALID"],
        ),
        form(
            (2, 4, 5, 5),
            weights(6, 2, 2, 2),
            weights(6),
            calm=True,
            pads=[None, [0, 1, 1, 0]],
            strides=[None, [2, 2]],
            group=[2],
        ),
        form(
            (1, 4, 5, 5),
            weights(4, 1, 3, 3),
            calm=True,
            pads=[None, [1, 1, 1, 1]],
            strides=[None, [2, 2]],
            dilations=[None, [2, 2]],
            group=[4],
        ),
        form(
            (1, 2, 9),
            weights(3, 2, 3),
            weights(3),
            calm=True,
            pads=[None, [2, 1]],
            strides=[None, [2]],
            dilations=[None, [2]],
            auto_pad=[None, "SAME_LOWER"],
        ),
        form(
            (1, 2, 4, 3, 4),
            weights(3, 2, 2, 2, 2),
            calm=True,
            pads=[None, [1, 0, 1, 0, 1, 0]],
            strides=[None, [2, 1, 2]],
            dilations=[None, [1, 2, 1]],
        ),
    ),
    "ConvInteger": (
        form(
            IMAGE,
            weights(4, 2, 3, 2),
            stored(3),
            stored(2),
            pads=[None, [1, 0, 2, 1]],
            strides=[None, [2, 1]],
            dilations=[None, [2, 1]],
        ),
        form(
            IMAGE,
            weights(4, 2, 3, 2),
            stored(3),
            Operand((4,), 0, 9, stored=True),
            strides=[None, [2, 1]],
            auto_pad=[None, "SAME_UPPER", "SAME_LOWER", "VALID"],
        ),
        form(
            (1, 4, 5, 5),
            weights(4, 2, 2, 2),
            group=[2],
        ),
    ),
    "ConvTranspose": (
        form(
            IMAGE,
            weights(2, 3, 3, 2),
            weights(3),
            calm=True,
            kernel_shape=[None, [3, 2]],
            pads=[None, [1, 0, 0, 1]],
            strides=[None, [2, 3]],
            dilations=[None, [2, 1]],
        ),
        form(
            IMAGE,
            weights(2, 3, 3, 3),
            calm=True,
            pads=[None, [1, 1, 0, 0]],
            strides=[[2, 2], [3, 2]],
            output_padding=[[1, 1], [0, 1]],
        ),
        form(
            IMAGE,
            weights(2, 3, 3, 3),
            calm=True,
            strides=[None, [2, 2], [3, 2]],
            dilations=[None, [2, 2]],
            auto_pad=["SAME_UPPER", "SAME_LOWER", "VALID"],
        ),
        form(
            IMAGE,
            weights(2, 3, 3, 3),
            calm=True,
            strides=[[2, 2]],
            auto_pad=[None, "SAME_UPPER", "SAME_LOWER"],
            output_shape=[[14, 12], [15, 13], [13, 11]],
        ),
        form(
            (1, 4, 5, 4),
            weights(4, 3, 2, 2),
            weights(6),
            calm=True,
            strides=[None, [2, 1]],
            group=[2],
        ),
        form(
            (1, 2, 7),
            weights(2, 3, 3),
            calm=True,
            pads=[None, [1, 1]],
            strides=[None, [2]],
            dilations=[None, [2]],
        ),
    ),
    "Col2Im": (
        form((1, 12, 16), ints(5, 5), ints(2, 3), pads=[[0, 1, 0, 0]]),
        form((2, 8, 12), ints(7, 9), ints(2, 2), strides=[[2, 2]], dilations=[[2, 2]]),
    ),
    "Gemm": (
        form((3, 4), (4, 5), calm=True, transA=[None, 0], transB=[None, 0]),
        form((3, 4), (4, 5), (5,), calm=True, transA=[None], transB=[None]),
        form((4, 3), weights(4, 5), (3, 1), calm=True, transA=[1], transB=[None]),
        form((3, 4), weights(5, 4), weights(1, 5), calm=True, transA=[None], transB=[1]),
        form((4, 3), (5, 4), (), calm=True, transA=[1], transB=[1]),
        form((1, 4), weights(4, 1), weights(1), calm=True, transA=[None], transB=[None]),
    ),
    "MatMul": (
        form((2, 3, 4), (2, 4, 5), calm=True),
        form((3, 4), weights(4, 2), calm=True),
        form((4,), (4,), calm=True),
        form((4,), (2, 4, 3), calm=True),
        form((2, 3, 4), (4,), calm=True),
        form((2, 1, 3, 4), (5, 4, 1), calm=True),
    ),
    "MatMulInteger": (
        form((3, 4), (4, 2)),
        form((3, 4), weights(4, 2), stored(3), stored(1)),
        form((2, 3, 4), weights(4, 2), stored(3), Operand((2,), 0, 5, stored=True)),
        form((3, 4), (4, 2), stored(7), given((2,), 0, 5)),
    ),
    "Einsum": tuple(
        form(*shapes, equation=[equation], calm=True)
        for equation, shapes in {
            "ij,jk->ik": ((2, 3), (3, 4)),
            "bij,bjk->bik": ((2, 2, 3), (2, 3, 4)),
            "ij->ji": ((2, 3),),
            "ii->i": ((3, 3),),
            "ij->": ((2, 3),),
            "i,j->ij": ((2,), (3,)),
            "...ij,...jk->...ik": ((2, 2, 3), (2, 3, 2)),
            "ij,jk": ((2, 3), (3, 2)),
            "ij , jk -> i k": ((2, 3), (3, 2)),
        }.items()
    ),
}
