"""The small C functions that expressions call where C has no operator with the meaning of TIR's.

Each stands in an include guard, so that functions which were generated apart can share a translation unit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from uaccel.ctext.types import bits, c_type, limits


def min_max(name: str, sign: str, dtype: str) -> str:
    """The second operand wins where the comparison is false, so with NaN, as in TVM's own code generators."""
    kind = c_type(dtype)
    return f"static inline {kind} {name}({kind} a, {kind} b)\n{{\n    return a {sign} b ? a : b;\n}}\n"


def short(dtype: str) -> str:
    """int8 -> i8, uint32 -> u32, float64 -> f64."""
    return f"{dtype[0]}{bits(dtype)}"


def quotient(name: str, dtype: str, *, floor: bool) -> str:
    """Towards zero or minus infinity, and defined for every operand: x / 0 is 0, the minimum / -1 wraps."""
    kind = c_type(dtype)
    guard = "    if (b == 0) {\n        return 0;\n    }\n"
    if dtype.startswith("int"):
        guard += f"    if (b == -1) {{\n        return ({kind})(0 - (u{kind})a);\n    }}\n"
    result = "a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0)" if floor else "a / b"
    return f"static inline {kind} {name}({kind} a, {kind} b)\n{{\n{guard}    return {result};\n}}\n"


def remainder(name: str, dtype: str) -> str:
    """Of the quotient towards zero; x % 0 and x % -1 are 0."""
    kind = c_type(dtype)
    condition = "b == 0 || b == -1" if dtype.startswith("int") else "b == 0"
    return f"static inline {kind} {name}({kind} a, {kind} b)\n{{\n    return {condition} ? 0 : a % b;\n}}\n"


def floor_remainder(name: str, dtype: str) -> str:
    """With the sign of the divisor; x % 0 and x % -1 are 0."""
    kind = c_type(dtype)
    return (
        f"static inline {kind} {name}({kind} a, {kind} b)\n{{\n"
        f"    const {kind} r = b == 0 || b == -1 ? 0 : a % b;\n"
        f"    return r != 0 && (r < 0) != (b < 0) ? r + b : r;\n}}\n"
    )


def float_to_int(name: str, source: str, target: str) -> str:
    """Towards zero, saturating, NaN to 0: a plain cast is undefined outside the range of the target."""
    kind, suffix = c_type(target), "f" if source == "float32" else ""
    low, high = limits(target)
    top = f"{float(int(high) + 1)!r}{suffix}"
    bottom = f"{float(low)!r}{suffix}"
    macro = target.upper()
    least = f"{macro}_MIN" if low < 0 else "0"
    return (
        f"static inline {kind} {name}({c_type(source)} x)\n{{\n"
        f"    if (x >= {top}) {{\n        return {macro}_MAX;\n    }}\n"
        f"    if (x <= {bottom}) {{\n        return {least};\n    }}\n"
        f"    return x == x ? ({kind})x : 0;\n}}\n"
    )


def other_reading(name: str, source: str, target: str) -> str:
    """The same bits as a number of another type."""
    return (
        f"static inline {c_type(target)} {name}({c_type(source)} x)\n{{\n"
        f"    union {{\n        {c_type(source)} given;\n        {c_type(target)} read;\n    }} both;\n"
        f"    both.given = x;\n    return both.read;\n}}\n"
    )


_FAMILIES: dict[str, Callable[[str, str], str]] = {
    "min": lambda name, dtype: min_max(name, "<", dtype),
    "max": lambda name, dtype: min_max(name, ">", dtype),
    "div": partial(quotient, floor=False),
    "mod": remainder,
    "floordiv": partial(quotient, floor=True),
    "floormod": floor_remainder,
}


class Helpers:
    """Names of helpers on request; remembers which, to define them in front of the function."""

    def __init__(self) -> None:
        self._sources: dict[str, str] = {}

    def of(self, family: str, dtype: str) -> str:
        """The name of ``family``'s function of two operands of one type."""
        name = f"uaccel_{family}_{short(dtype)}"
        self._sources.setdefault(name, _FAMILIES[family](name, dtype))
        return name

    def conversion(self, source: str, target: str) -> str:
        """The name of the function that converts floating point to int32, int64 or uint64."""
        name = f"uaccel_{short(source)}_to_{short(target)}"
        self._sources.setdefault(name, float_to_int(name, source, target))
        return name

    def same_bits(self, source: str, target: str) -> str:
        """The name of the function that reads the bits of one type as another, of the same width."""
        name = f"uaccel_{short(source)}_bits_{short(target)}"
        self._sources.setdefault(name, other_reading(name, source, target))
        return name

    def define(self, text: str) -> str:
        """The definitions of the helpers that ``text`` calls, in alphabetical order."""
        guarded = []
        for name, source in sorted(self._sources.items()):
            if f"{name}(" in text:
                guarded.append(f"#ifndef {name.upper()}\n#define {name.upper()}\n{source}#endif\n\n")
        return "".join(guarded)
