"""Channels of a spectrum: weighted sums of energies, and their square roots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require
from uaccel.ops.exact import const
from uaccel.ops.spectrum import NoAttrs
from uaccel.tvm_api.loops import computed_once, count_to, local_array, written_by_loops


@dataclass(frozen=True)
class FilterBankAttrs(Attributes):
    """One channel more has weights: of the first nothing but the rest counts, for the second."""

    channels: int
    widest: int


@register
class FilterBank(IntegerOperator[FilterBankAttrs]):
    """Each energy goes into two channels: by its weight, and by the rest (``unweights``) into the next one."""

    name = "filter_bank"
    arguments = ("input", "factors", "unweights", "frequency_starts", "weight_starts", "widths")

    def infer(self, inputs: Sequence[TensorInfo], attrs: FilterBankAttrs) -> TensorInfo:
        data, *tables = inputs
        require(data.dtype == "uint32" and len(data.shape) == 1, f"filter_bank: input {data}, wanted uint32 [N]")
        require(all(table.dtype == "int16" for table in tables), "filter_bank: tables of other types than int16")
        enough = all(table.elements > attrs.channels for table in tables[2:])
        require(enough and attrs.channels > 0, f"filter_bank: tables for {attrs.channels} channels are too short")
        return TensorInfo((attrs.channels,), "uint64")

    def meaning(self, inputs: Sequence[Any], attrs: FilterBankAttrs) -> Any:
        def write(*arrays: Any) -> None:
            data, weights, unweights, frequencies, starts, widths, output = arrays
            sums = local_array(2, "int64")
            sums[1] = const(0)
            with count_to(attrs.channels + 1) as channel:
                sums[0] = sums[1]
                sums[1] = const(0)
                with count_to(attrs.widest) as j:
                    counts = j < exact.i32(widths[channel])
                    energy_at = exact.chosen(counts, exact.i32(frequencies[channel]) + j, 0)
                    weight_at = computed_once(exact.chosen(counts, exact.i32(starts[channel]) + j, 0))
                    energy = computed_once(exact.chosen(counts, exact.i64(data[energy_at]), const(0)))
                    sums[0] = sums[0] + exact.i64(weights[weight_at]) * energy
                    sums[1] = sums[1] + exact.i64(unweights[weight_at]) * energy
                at = exact.chosen(channel > 0, channel - 1, 0)
                output[at] = sums[0].astype("uint64")

        return written_by_loops([((attrs.channels,), "uint64")], list(inputs), write, self.name)[0]


@register
class SquareRoot(IntegerOperator[NoAttrs]):
    """Of 64 bits, rounded, and shifted to the right by a number that may be computed."""

    name = "filter_bank_square_root"
    arguments = ("input", "bits")

    def infer(self, inputs: Sequence[TensorInfo], attrs: NoAttrs) -> TensorInfo:
        data, bits = inputs
        fits = data.dtype == "uint64" and bits.dtype == "int32" and bits.elements == 1
        require(fits, f"{self.name}: {data} and {bits}, wanted uint64 and one int32")
        return TensorInfo(data.shape, "uint32")

    def meaning(self, inputs: Sequence[Any], attrs: NoAttrs) -> Any:
        data = exact.info(inputs[0])

        def write(numbers: Any, bits: Any, output: Any) -> None:
            left, root, bit = (local_array(1, "uint64") for _ in range(3))
            one, zero = const(1, "uint64"), const(0, "uint64")
            with count_to(data.elements) as i:
                left[0], root[0], bit[0] = numbers[i], zero, const(1 << 62, "uint64")
                narrow = (numbers[i] >> const(32, "uint64")) < one
                limit = computed_once(exact.chosen(narrow, const(0xFFFF, "uint64"), const(0xFFFFFFFF, "uint64")))
                with count_to(32):
                    taken = computed_once(root[0] + bit[0])
                    fits = computed_once(left[0] >= taken)
                    left[0] = exact.chosen(fits, left[0] - taken, left[0])
                    root[0] = (root[0] >> one) + exact.chosen(fits, bit[0], zero)
                    bit[0] = bit[0] >> const(2, "uint64")
                up = exact.chosen(left[0] > root[0], exact.chosen(root[0] < limit, one, zero), zero)
                output[i] = ((root[0] + up) >> bits[0].astype("uint64")).astype("uint32")

        return written_by_loops([(data.shape, "uint32")], list(inputs), write, self.name)[0]
