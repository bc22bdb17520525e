"""What a model that computes in float32 is told: how much of it does, and what quantising would save."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from uaccel.frontend import quantising
from uaccel.model import ImportedModel
from uaccel.ops.base import info_of, infos_of, operator_of
from uaccel.ops.traits import DEQUANTIZE, FLOATS, QUANTIZE, macs_of, name_of, tensor_arguments
from uaccel.tvm_api import is_constant, is_operator_call, is_tuple_type, main_bindings

SMALL = ("int8", "uint8", "int16", "uint16")


def float_advice(model: ImportedModel) -> tuple[str, ...]:
    """One sentence, or none: steps that quantise inputs and dequantise outputs do no work to speak of.

    The module is one of operators, before any of them are a region.
    """
    calls = [expr for _, expr in main_bindings(model.module)[1] if is_operator_call(expr)]
    macs = [(macs_of(call), _is_float(call)) for call in calls if not is_tuple_type(call)]
    total = sum(count for count, _ in macs)
    floating = sum(count for count, is_float in macs if is_float)
    weights = {constant: info_of(constant).size for call in calls for constant in _float_weights(call)}
    size = sum(weights.values())
    if not floating and not size:
        return ()
    work = f"{_share(floating, total)} multiply-accumulates are in float" if floating else "it computes in float"
    if model.source_format != "tflite" and any(map(_is_quantised, calls)):
        return (f"{work} though the model is quantised: its steps leave them out, or a warning says why they are",)
    saving = f"quantised to int8, its float weights would take {size // 4:,} bytes of flash instead of {size:,}"
    saving = saving if size else "quantised to int8, it would compute in integers"
    return (f"{work}; {saving}: {quantising(model.source_format)}",)


def _is_float(call: Any) -> bool:
    return infos_of(call)[0].dtype in FLOATS


def _is_quantised(call: Any) -> bool:
    """Whether it takes or gives small integers, or multiplies by such: tables of trees are no quantised numbers."""
    if operator_of(call) is None:
        return False
    given = [argument for argument in tensor_arguments(call.args) if macs_of(call) or not is_constant(argument)]
    return any(info.dtype in SMALL for info in (*infos_of(call), *map(info_of, given)))


def _float_weights(call: Any) -> Iterator[Any]:
    """Constants of more than a number that are multiplied with; those of quantising are scales, which stay."""
    own = operator_of(call) is not None and not (_is_float(call) and macs_of(call))
    if not own and name_of(call) not in (QUANTIZE, DEQUANTIZE):
        for argument in tensor_arguments(call.args):
            if is_constant(argument):
                info = info_of(argument)
                if info.dtype in FLOATS and info.elements > 1:
                    yield argument


def _share(part: int, total: int) -> str:
    return f"all {total:,}" if part == total else f"{part:,} of {total:,}"
