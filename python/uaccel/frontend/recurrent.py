"""What the operator ``recurrent`` takes of weights and biases as formats have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uaccel.errors import need
from uaccel.model import Array
from uaccel.ops.recurrent import GATES, Cell

MOST = 127
"""An integer weight from its zero point."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """A row for each unit of each gate; ``scales``, of integers, one for each row."""

    values: Array
    scales: Array | None = None

    @property
    def real(self) -> Array:
        return self.values if self.scales is None else self.values.astype(np.float32) * self.scales[:, None]


def of_integers(stored: Array, scale: Array, zero_point: Array) -> Matrix:
    """``scale`` and ``zero_point`` are one number or one for each row; real numbers where int8 does not hold them."""
    scales = np.broadcast_to(scale.reshape(-1), len(stored)).astype(np.float32)
    zeros = np.broadcast_to(zero_point.reshape(-1), len(stored)).astype(np.int64)
    values = stored.astype(np.int64) - zeros[:, None]
    if np.abs(values).max(initial=0) <= MOST + 1 and values.max(initial=0) <= MOST:
        return Matrix(values.astype(np.int8), scales)
    return Matrix(Matrix(values, scales).real.astype(np.float32))


@dataclass(frozen=True)
class Gates:
    """``order``: where the format has the gates in the order of ``recurrent``; ``reset_after`` as there."""

    cell: Cell
    units: int
    order: tuple[int, ...]
    reset_after: bool = False

    def parameters(self, matrices: Sequence[Matrix], biases: Sequence[Array]) -> tuple[list[Array], list[Array]]:
        """Weights and bias; scales, of integers alone."""
        rows = len(self.order) * self.units
        for values in (*(matrix.values for matrix in matrices), *biases):
            need(
                len(values) == rows, f"weights or a bias have {len(values)} rows, wanted {rows} for {self.units} units"
            )
        whole = all(matrix.scales is not None for matrix in matrices)
        weights = [self._ordered(matrix.values if whole else matrix.real) for matrix in matrices]
        scales = [self._ordered(matrix.scales).reshape(-1) for matrix in matrices if matrix.scales is not None]
        return [*weights, self._bias(*map(self._ordered, biases))], [np.concatenate(scales)] if whole else []

    def _ordered(self, value: Array) -> Array:
        apart = value.reshape(GATES[self.cell], self.units, *value.shape[1:])
        return np.ascontiguousarray(apart[list(self.order)])

    def _bias(self, given: Array, kept: Array) -> Array:
        if not self.reset_after:
            return given + kept
        before = kept.copy()
        before[2] = 0
        return np.concatenate([given + before, kept[2:]])
