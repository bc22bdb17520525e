"""What every front end asks of a model, and how it refuses in words. Nothing here loads TVM."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import accumulate
from typing import Final

from uaccel.errors import ModelError, need
from uaccel.model import TensorInfo

LARGEST_TENSOR: Final = 1 << 31  # kernels count in 32 bits
ADVICE: Final = "rewrite the layer with supported operators"
SHAPE_OF_DATA: Final = "the shape of its result depends on data, and firmware needs every shape fixed"
NO_CONVERTER: Final = "there is no converter for this operator"
_LONGEST_LINE: Final = 500
_LONGEST_LIST: Final = 3000
"""Characters of a message."""


def need_axis(axis: int, rank: int) -> int:
    """The axis counted from the front."""
    need(-rank <= axis < rank, f"axis {axis} is outside a tensor of rank {rank}")
    return axis % rank


def need_type(dtype: str, known: Container[str], what: str) -> None:
    """``known``: the types that the front end has."""
    need(dtype in known, f"{what} has type {dtype}, which cannot be compiled")


def need_elements(info: TensorInfo, what: str) -> None:
    need(info.elements > 0, f"{what} ({info}) holds no elements; nothing to compute")


def need_size(info: TensorInfo, what: str) -> None:
    fits = info.size < LARGEST_TENSOR
    need(fits, f"{what} ({info}) has {info.size} bytes; at most {LARGEST_TENSOR - 1} can be compiled")


def shape_text(shape: Sequence[int | str]) -> str:
    return f"[{','.join(map(str, shape))}]"


def at_run_time(role: str, name: str) -> ModelError:
    """That an operand would have to be known, and is not."""
    return ModelError(f'{role} "{name}" is computed at run time; only constant {role} can be compiled')


def unsupported(path: object, problems: list[str]) -> ModelError:
    """All that a model has and nobody can convert, in one error; of very many, those that come first."""
    ends = accumulate(len(problem) for problem in problems)
    shown = problems[: max(1, sum(end <= _LONGEST_LIST for end in ends))]
    rest = f"; and {len(problems) - len(shown)} more" if len(shown) < len(problems) else ""
    return ModelError(f"cannot import {path}: {len(problems)} unsupported: {'; '.join(shown)}{rest}")


def first_line(error: Exception) -> str:
    """Of what a library says, without what a terminal would obey; what follows is about its own code."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return "".join(letter if letter.isprintable() else "?" for letter in lines[0][:_LONGEST_LINE]).rstrip(".;")
