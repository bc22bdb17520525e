"""The constants of a model: one array per distinct content, apart from the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.ctext.arrays import COMPACT_FROM, SUPPRESSED, array_body, as_string, is_long
from uaccel.ctext.types import storage_type
from uaccel.emit.options import Names
from uaccel.lower.program import Layer, Program, StateValue
from uaccel.ops.kernel import Constant

ALIGNMENT = 4
"""Of bytes too: kernels for some CPUs load them by words."""
DEVICE_ALIGNMENT = 16


@dataclass(frozen=True, eq=False)
class Array:
    """One constant array; ``users`` are the layers that read it, ``for_device`` says that an accelerator does.
    ``pool``: of constants that are divided."""

    symbol: str
    data: NDArray[Any]
    for_device: bool = False
    users: list[str] = field(default_factory=list)
    pool: str = ""

    @property
    def alignment(self) -> int:
        """Said wherever the array is declared: of one that has none, compilers assume more than another compiler or
        option gave it (16 bytes on x86-64)."""
        return DEVICE_ALIGNMENT if self.for_device else max(ALIGNMENT, self.data.itemsize)

    @property
    def place(self) -> str:
        """The macro that says where it lies."""
        if self.for_device:
            return "UACCEL_DEVICE_CONSTANT"
        return f"UACCEL_CONSTANT_POOL({self.pool})" if self.pool else "UACCEL_CONSTANT"

    @property
    def declaration(self) -> str:
        kind = storage_type(str(self.data.dtype))
        return f"UACCEL_ALIGNED({self.alignment}) const {kind} {self.symbol}[{max(1, self.data.size)}]"


class ConstantPool:
    """Names every constant of a program and finds equal ones."""

    def __init__(self, program: Program, names: Names) -> None:
        self._names = names
        self._program = program
        self._by_content: dict[tuple[str, bytes, bool], Array] = {}
        self._symbols: dict[tuple[str, int, int], str] = {}
        for layer in program.layers:
            parts = layer.streaming.functions if layer.streaming else ()
            inner = (function for each in layer.inner for function in each.functions)
            for variant in (*layer.forms, *parts, *inner):
                self._add_layer(variant)
        self._first_values = {entry.before.name: self._add_first_value(entry) for entry in program.state}

    def _add_layer(self, layer: Layer) -> None:
        for i, call in enumerate(layer.kernel.calls):
            for j, argument in enumerate(call.arguments):
                if isinstance(argument, Constant):
                    self._symbols[layer.name, i, j] = self._add(layer, argument, f"_{i}" if i else "")

    def _add(self, layer: Layer, constant: Constant, suffix: str) -> str:
        data = np.ascontiguousarray(constant.data)
        for_device = layer.on_accelerator and self._program.engine(layer).has_device
        key = (str(data.dtype), data.tobytes(), for_device)
        if key not in self._by_content:
            symbol = f"{self._names.prefix}_{layer.name}_{constant.role}{suffix}"
            self._by_content[key] = Array(symbol, data, for_device)
        array = self._by_content[key]
        if layer.name not in array.users:
            array.users.append(layer.name)
        return array.symbol

    def _add_first_value(self, entry: StateValue) -> str:
        """Nothing where ``memset`` says it."""
        data = np.ascontiguousarray(entry.spec.initial)
        if len(set(data.tobytes())) == 1:
            return ""
        key = (str(data.dtype), data.tobytes(), False)
        if key not in self._by_content:
            self._by_content[key] = Array(f"{self._names.prefix}_first_{entry.before.name}", data)
        array = self._by_content[key]
        array.users.append(f"the state {entry.before.name}")
        return array.symbol

    def first_value(self, entry: StateValue) -> str:
        """The constant that a part of the state begins with; empty where its bytes are all the same."""
        return self._first_values[entry.before.name]

    def symbol(self, layer: Layer, call: int, argument: int) -> str:
        return self._symbols[layer.name, call, argument]

    @property
    def arrays(self) -> list[Array]:
        return list(self._by_content.values())


def weights_header(names: Names, arrays: Sequence[Array], provenance: str) -> str:
    guard = f"{names.macro}_WEIGHTS_H"
    lines = [provenance, f"#ifndef {guard}", f"#define {guard}", "", '#include "uaccel_kernel.h"', ""]
    lines += [f"extern {array.declaration};" for array in arrays]
    return "\n".join([*lines, "", "#endif", ""])


def weights_source(names: Names, arrays: Sequence[Array], provenance: str) -> str:
    parts = [provenance, f'#include "{names.prefix}_weights.h"', ""]
    compact = sum(array.data.nbytes for array in arrays) >= COMPACT_FROM
    if compact:
        parts.append(SUPPRESSED)
    if not all(np.isfinite(array.data).all() for array in arrays):
        parts.insert(1, "#include <math.h>\n")
    for array in arrays:
        shape = "x".join(map(str, array.data.shape)) or "1"
        users = array.users if len(array.users) <= 4 else [*array.users[:4], f"and {len(array.users) - 4} more"]
        parts.append(f"/* {array.data.dtype} {shape}, {array.data.nbytes} bytes: {', '.join(users)} */")
        parts.append(f"{array.declaration} {array.place} ={_value(array.data, compact)};\n")
    if not arrays:
        parts.append(f"/* This model has no constants. */\ntypedef int {names.prefix}_no_weights;\n")
    return "\n".join(parts)


def _value(data: NDArray[Any], compact: bool) -> str:
    if compact and is_long(data):
        return f"\n{as_string(data)}"
    return f" {{\n{array_body(data) if data.size else '    0'}\n}}"
