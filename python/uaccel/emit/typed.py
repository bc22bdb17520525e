"""What an application knows of each input and output beside its bytes: type, count, shape, and what elements mean."""

from __future__ import annotations

from typing import Final

from uaccel.ctext.layout import wrapped
from uaccel.ctext.literals import float_literal, int_literal
from uaccel.ctext.types import limits, storage_type
from uaccel.emit.options import Names
from uaccel.lower.program import Program
from uaccel.model import TensorSpec

CONVERTED: Final = ("int8", "uint8", "int16")
"""Types that have functions from and to real numbers."""


def typed_macros(program: Program, names: Names) -> str:
    """Of the header, behind the sizes."""
    signature = program.signature
    rows = [
        line
        for macros, specs in ((names.input_sizes, signature.inputs), (names.output_sizes, signature.outputs))
        for macro, spec in zip(macros, specs, strict=True)
        for line in _macros(macro.removesuffix("_SIZE"), spec)
    ]
    head = (
        "/* Of each: the type of its elements, how many there are, and the extents. Where it is quantised,\n"
        " * a real number is scale * (element - zero point). */"
    )
    return "\n".join([head, *rows]) + "\n" if rows else ""


def _macros(base: str, spec: TensorSpec) -> list[str]:
    shape = ", ".join(map(str, spec.info.shape))
    lines = [
        f"#define {base}_TYPE {storage_type(spec.info.dtype)}",
        f"#define {base}_COUNT {spec.info.elements}",
        f"#define {base}_RANK {len(spec.info.shape)}",
    ]
    lines += [f"#define {base}_SHAPE {{{shape}}}"] if shape else []
    quantisation = spec.quantisation
    if quantisation is None or quantisation.per_channel:
        return lines
    return [
        *lines,
        f"#define {base}_SCALE {float_literal(quantisation.scale, 'float32')}",
        f"#define {base}_ZERO_POINT {_signed(quantisation.zero_point)}",
    ]


def _signed(value: int) -> str:
    """An operand of any expression."""
    return f"({int_literal(value)})" if value < 0 else int_literal(value)


def is_converted(spec: TensorSpec) -> bool:
    """Whether there is a function between its elements and real numbers."""
    quantisation = spec.quantisation
    return spec.info.dtype in CONVERTED and quantisation is not None and not quantisation.per_channel


def conversions(program: Program, names: Names) -> str:
    """Functions of the header: from real numbers to an input's elements, and from an output's elements to real ones."""
    signature = program.signature
    inputs = zip(names.inputs, names.input_sizes, signature.inputs, strict=True)
    outputs = zip(names.outputs, names.output_sizes, signature.outputs, strict=True)
    takes = [_quantize(names, member, macro, spec) for member, macro, spec in inputs if is_converted(spec)]
    gives = [_dequantize(names, member, macro, spec) for member, macro, spec in outputs if is_converted(spec)]
    return "\n".join([*([_nearest(names)] if takes else []), *takes, *gives])


def _nearest(names: Names) -> str:
    return f"""/* The nearest integer between two bounds, halves away from zero; a NaN becomes the lower one. */
static inline int32_t {names.prefix}_nearest(float steps, float low, float high)
{{
    const float held = steps > low ? (steps < high ? steps : high) : low;
    const int32_t whole = (int32_t)held;
    const float rest = held - (float)whole;
    return whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
}}
"""


def _quantize(names: Names, member: str, macro: str, spec: TensorSpec) -> str:
    assert spec.quantisation is not None
    base, dtype = macro.removesuffix("_SIZE"), spec.info.dtype
    low, high = (int(bound) - spec.quantisation.zero_point for bound in limits(dtype))
    c = storage_type(dtype)
    head = wrapped(f"static inline {c} {names.prefix}_quantize_{member}", ["float real"])
    return f"""/* The element that stands for a real number; of what is beyond the range, the end of the range. */
{head}
{{
    const float steps = real / {base}_SCALE;
    const int32_t whole = {names.prefix}_nearest(steps, {low}.0f, {high}.0f);
    return ({c})(whole + {base}_ZERO_POINT);
}}
"""


def _dequantize(names: Names, member: str, macro: str, spec: TensorSpec) -> str:
    base = macro.removesuffix("_SIZE")
    head = wrapped(
        f"static inline float {names.prefix}_dequantize_{member}", [f"{storage_type(spec.info.dtype)} element"]
    )
    return f"""/* The real number that an element of the output stands for. */
{head}
{{
    const int32_t steps = (int32_t)element - {base}_ZERO_POINT;
    return (float)steps * {base}_SCALE;
}}
"""
