"""Computes a quantised ONNX or PyTorch program in float64, rounded only where the program itself quantises.

The import turns the same program into integers. A bias or a scale that was lost there shows here, while the integer
meaning has lost it as well. A fault of the front end before that shows in neither: the model's own runtime sees it
(``runtimes.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.model import ImportedModel
from uaccel.ops.operator import DEQUANTIZE, QUANTIZE, constant, info_of, name_of
from uaccel.ops.resize import positions
from uaccel.runner.differences import allowance
from uaccel.runner.reference import Opinion, Samples, compared
from uaccel.tvm_api import (
    bindings_of,
    is_call,
    is_constant,
    is_tuple,
    is_tuple_get_item,
    plain_attributes,
    relax,
    replace_main,
    with_type,
)
from uaccel.tvm_api.executor import Executor

NAME: Final = "its real meaning in float64"
LAYER_NORM, GROUP_NORM = "relax.nn.layer_norm", "relax.nn.group_norm"
NORMS: Final = (LAYER_NORM, GROUP_NORM, "relax.nn.instance_norm")
RESIZE: Final = "relax.image.resize2d"
PLACES: Final = ("align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel")
FLOAT, WIDE = "float32", "float64"
# How near to the middle between two steps, in steps, counts as the middle. A value of up to 2**16 steps has a float64
# rounding error of up to 2**-37 steps an operation, so that this allows for 2**13 of them.
NEAR: Final = 2.0**-24


def real_opinion(model: ImportedModel, samples: Samples, outputs: Samples) -> Opinion | None:
    """Compares outputs with the program in float64; None without quantisation, or if an operator has no float64 form.

    Samples for which the program quantises a NaN are left out and counted."""
    if model.real is None or model.state:
        return None
    try:
        executor = Executor(in_float64(model.real))
        found = [executor.run([_wide(value) for value in sample]) for sample in samples]
    except Exception:  # an operator that has no float64 form; then there is no opinion
        return None
    said = [(output, wanted) for output, (*wanted, doubts) in zip(outputs, found, strict=True) if not doubts]
    opinion = compared(
        model, NAME, [output for output, _ in said], [wanted for _, wanted in said], allowance(model, NAME)
    )
    return replace(opinion, no_number=len(outputs) - len(said))


def _wide(value: NDArray[Any]) -> NDArray[Any]:
    return value.astype(WIDE) if value.dtype == FLOAT else value


def in_float64(module: Any) -> Any:
    """Turns every float32 of a module into float64. One more result, the last, counts the NaNs that it quantises (as
    of 0 / 0): no step is the nearest to them."""
    parameters, bindings, result = bindings_of(module["main"])
    known = {var: relax.Var(var.name, _type(var)) for var in parameters}

    def body(block: Any) -> Any:
        writer = _Writer(block, known)
        for var, expr in bindings:
            known[var] = block.emit(writer.written(expr), str(var.name))
        results = result.fields if is_tuple(result) else [result]
        return relax.Tuple([*map(writer.again, results), writer.doubts])

    return replace_main([known[var] for var in parameters], body)


def _type(var: Any) -> Any:
    info = info_of(var)
    return relax.TensorType(info.shape, WIDE if info.dtype == FLOAT else info.dtype)


def _is_bilinear(given: Any) -> bool:
    known = given.method == "linear" and str(given.coordinate_transformation_mode) in PLACES
    return known and given.layout == "NCHW" and not any(map(float, given.roi or ()))


def _spread(mode: str, given: int, wanted: int) -> NDArray[np.float64]:
    """Returns the matrix of linear interpolation along one axis: a row for each pixel of the result."""
    weights = np.zeros((wanted, given))
    for row, place in zip(weights, positions(mode, given, wanted), strict=True):
        rest = float(place - int(place))
        row[int(place)] += 1 - rest
        row[min(int(place) + 1, given - 1)] += rest
    return weights


class _Writer:
    """Writes expressions anew in float64; ``known`` maps variables of the old module to those of the new one."""

    def __init__(self, block: Any, known: dict[Any, Any]) -> None:
        self.block, self.known = block, known
        self.doubts: Any = _number(0)

    def written(self, expr: Any) -> Any:
        if not is_call(expr):
            return self.again(expr)
        if name_of(expr) == QUANTIZE:
            return self._quantised(expr)
        if name_of(expr) == DEQUANTIZE:
            return self._real(expr)
        if name_of(expr) in NORMS:
            return self._normalised(expr, [self.again(arg) for arg in expr.args], plain_attributes(expr))
        if name_of(expr) == RESIZE and _is_bilinear(plain_attributes(expr)):
            return self._resized(expr)
        return with_type(expr, [self.again(arg) for arg in expr.args], FLOAT, WIDE)

    def again(self, expr: Any) -> Any:
        """Returns the expression with new variables and float64 constants."""
        if is_constant(expr):
            return constant(_wide(np.asarray(expr.value.numpy())))
        if is_tuple(expr):
            return relax.Tuple([self.again(field) for field in expr.fields])
        if is_tuple_get_item(expr):
            return relax.TupleGetItem(self.again(expr.tuple_value), expr.index)
        return self.known.get(expr, expr)

    def _let(self, expr: Any) -> Any:
        return self.block.emit(expr, "step")

    def _quantised(self, call: Any) -> Any:
        """Rounds to the nearest step, halves to even, and adds the zero point.

        It is written out, as plain rounding would take a half that float64 missed by one bit to the wrong side: what is
        within ``NEAR`` of the middle goes up exactly if the step below is odd."""
        limits = np.iinfo(info_of(call).dtype)
        value, scale, zero = self._parts(call)
        doubtful = self._let(relax.op.astype(self._let(relax.op.isnan(value)), WIDE))
        self.doubts = self._let(relax.op.add(self.doubts, self._let(relax.op.sum(doubtful))))
        steps = self._let(relax.op.divide(value, scale))
        below = self._let(relax.op.floor(steps))
        above_middle = self._let(relax.op.subtract(self._let(relax.op.subtract(steps, below)), _number(0.5)))
        half = self._let(relax.op.multiply(below, _number(0.5)))
        odd = self._let(relax.op.not_equal(self._let(relax.op.floor(half)), half))
        middle = self._let(relax.op.less_equal(self._let(relax.op.abs(above_middle)), _number(NEAR)))
        up = self._let(relax.op.where(middle, odd, self._let(relax.op.greater(above_middle, _number(0)))))
        nearest = self._let(relax.op.add(below, self._let(relax.op.astype(up, WIDE))))
        clipped = relax.op.clip(self._let(relax.op.add(nearest, zero)), float(limits.min), float(limits.max))
        return relax.op.astype(self._let(clipped), info_of(call).dtype)

    def _real(self, call: Any) -> Any:
        value, scale, zero = self._parts(call)
        return relax.op.multiply(self._let(relax.op.subtract(value, zero)), scale)

    def _normalised(self, call: Any, args: list[Any], attrs: Any) -> Any:
        """Writes out a normalisation, as TVM has none of float64: (x - mean) / sqrt(variance + epsilon), then factors.

        Groups are normalised as rows of a reshaped tensor. Factors belong to channels, but for layer normalisation."""
        (value, *factors), axes, shape = args, list(attrs.axes), info_of(call).shape
        if name_of(call) != LAYER_NORM:
            along = (-1, *(1,) * (len(shape) - 2))
            factors = [self._let(relax.op.reshape(factor, along)) for factor in factors]
        if name_of(call) == GROUP_NORM:
            value, axes = self._let(relax.op.reshape(value, (shape[0], int(attrs.num_groups), -1))), [2]
        centred = self._let(relax.op.subtract(value, self._let(relax.op.mean(value, axes, keepdims=True))))
        squares = self._let(relax.op.mean(self._let(relax.op.multiply(centred, centred)), axes, keepdims=True))
        deviation = self._let(relax.op.sqrt(self._let(relax.op.add(squares, _number(attrs.epsilon)))))
        normal = self._let(relax.op.reshape(self._let(relax.op.divide(centred, deviation)), shape))
        return relax.op.add(self._let(relax.op.multiply(normal, factors[0])), factors[1])

    def _resized(self, call: Any) -> Any:
        """Writes a bilinear resize as two products of matrices, as TVM resizes in float32 whatever the type."""
        mode = str(plain_attributes(call).coordinate_transformation_mode)
        rows, columns = (_spread(mode, info_of(call.args[0]).shape[axis], info_of(call).shape[axis]) for axis in (2, 3))
        wide = self._let(relax.op.matmul(self.again(call.args[0]), constant(np.ascontiguousarray(columns.T))))
        return relax.op.matmul(constant(rows), wide)

    def _parts(self, call: Any) -> tuple[Any, Any, Any]:
        """Returns value, scale and zero point in float64; those of channels are reshaped to lie along their axis."""
        value, scale, zero = (self._let(relax.op.astype(self.again(arg), WIDE)) for arg in call.args)
        rank, axis = len(info_of(call).shape), int(call.attrs.axis)
        if info_of(scale).elements == 1 or rank == 0:
            shape: Sequence[int] = ()
        else:
            shape = [-1 if place == axis % rank else 1 for place in range(rank)]
        return value, self._let(relax.op.reshape(scale, shape)), self._along(zero, scale, shape)

    def _along(self, zero: Any, scale: Any, shape: Sequence[int]) -> Any:
        single = info_of(zero).elements == 1 < info_of(scale).elements
        return self._let(relax.op.reshape(zero, () if single else shape))


def _number(value: float) -> Any:
    return constant(np.asarray(value, WIDE))
