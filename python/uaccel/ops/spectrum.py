"""What stands before and behind an FFT of 16-bit samples: a window, a scale, energies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require
from uaccel.ops.exact import const
from uaccel.tvm_api import te, tirx
from uaccel.tvm_api.loops import count_to, local_array, written_by_loops


@dataclass(frozen=True)
class WindowAttrs(Attributes):
    shift: int


@register
class Window(IntegerOperator[WindowAttrs]):
    """Each row times the weights, shifted to the right, and saturated."""

    name = "window"
    arguments = ("input", "factors")

    def infer(self, inputs: Sequence[TensorInfo], attrs: WindowAttrs) -> TensorInfo:
        data, weights = inputs
        fits = data.dtype == weights.dtype == "int16" and data.shape[-1:] == weights.shape
        require(fits, f"window: weights {weights} for {data}, wanted int16 of the same length")
        require(0 <= attrs.shift < 32, f"window: a shift of {attrs.shift} bits")
        return data

    def meaning(self, inputs: Sequence[Any], attrs: WindowAttrs) -> Any:
        data, weights = inputs

        def element(*index: Any) -> Any:
            product = exact.i32(data(*index)) * exact.i32(weights(index[-1]))
            return exact.clamp(product >> const(attrs.shift, "int32"), -32768, 32767).astype("int16")

        return te.compute(data.shape, element, name=self.name)


@dataclass(frozen=True)
class NoAttrs(Attributes):
    """None."""


@register
class AutoScale(IntegerOperator[NoAttrs]):
    """The samples shifted to the left as far as the largest allows, and by how many bits."""

    name = "fft_auto_scale"
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: NoAttrs) -> tuple[TensorInfo, ...]:
        (data,) = inputs
        require(data.dtype == "int16" and len(data.shape) == 1, f"fft_auto_scale: input {data}, wanted int16 [N]")
        return data, TensorInfo((), "int32")

    def meaning(self, inputs: Sequence[Any], attrs: NoAttrs) -> Any:
        data = exact.info(inputs[0])

        def write(samples: Any, output: Any, bits: Any) -> None:
            """The largest magnitude is 16 bits long in the reference: of -32768 it is negative."""
            largest, length = local_array(1, "int16"), local_array(1, "int32")
            largest[0] = const(0, "int16")
            with count_to(data.elements) as i:
                value, most = exact.i32(samples[i]), exact.i32(largest[0])
                other = exact.chosen(-value > most, -value, most)
                largest[0] = exact.chosen(value > most, value, other).astype("int16")
            length[0] = const(0, "int32")
            with count_to(15) as bit:
                length[0] = length[0] + ((exact.i32(largest[0]) >> bit) > 0).astype("int32")
            bits[0] = exact.chosen(largest[0] > const(0, "int16"), const(15, "int32") - length[0], const(0, "int32"))
            with count_to(data.elements) as i:
                output[i] = (exact.i32(samples[i]) << bits[0]).astype("int16")

        return written_by_loops([(data.shape, "int16"), ((), "int32")], list(inputs), write, self.name)


@dataclass(frozen=True)
class EnergyAttrs(Attributes):
    """Of the pairs from ``start`` on and before ``end``; other results are zero."""

    start: int
    end: int
    count: int


@register
class Energy(IntegerOperator[EnergyAttrs]):
    """Squares of real and imaginary parts, summed."""

    name = "energy"
    arguments = ("input",)

    def infer(self, inputs: Sequence[TensorInfo], attrs: EnergyAttrs) -> TensorInfo:
        (data,) = inputs
        require(data.dtype == "int16" and len(data.shape) == 1, f"energy: input {data}, wanted int16 [N]")
        inside = 0 <= attrs.start <= attrs.end <= min(attrs.count, data.elements // 2)
        require(inside, f"energy: pairs {attrs.start} to {attrs.end} of {data}, {attrs.count} results")
        return TensorInfo((attrs.count,), "uint32")

    def meaning(self, inputs: Sequence[Any], attrs: EnergyAttrs) -> Any:
        (data,) = inputs
        last = int(data.shape[0]) // 2 - 1

        def element(i: Any) -> Any:
            at = 2 * tirx.min(i, last)
            real, imaginary = exact.i64(data(at)), exact.i64(data(at + 1))
            inside = tirx.all(i >= attrs.start, i < attrs.end)
            return tirx.Select(inside, real * real + imaginary * imaginary, const(0)).astype("uint32")

        return te.compute((attrs.count,), element, name=self.name)
