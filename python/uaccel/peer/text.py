"""Writes the C function that calls CMSIS-NN for one layer: the layer's numbers as constants around one call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from uaccel.accelerator import Constant, Definition, Input, Lowered, Output, Region, Scratch, library_call

C_TYPES: Final[Mapping[str, str]] = {
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
}
LEAST_SCRATCH: Final = 16  # Some functions refuse to be given no memory even where they use none.


def suffix(dtype: str) -> str:
    """int8 -> s8: how the functions' names state the type of activations."""
    return f"s{dtype.removeprefix('int')}"


def fields(*values: Any) -> str:
    """A structure's or an array's initialiser; inner sequences are structures themselves."""
    return "{" + ", ".join(fields(*v) if isinstance(v, (tuple, list)) else str(int(v)) for v in values) + "}"


def across(values: Sequence[int]) -> tuple[int, int]:
    """Height and width as a tile has them: width first."""
    return values[1], values[0]


@dataclass
class Caller:
    """Collects what the function of a layer has: parameters with what is given for them, and statements.

    ``call`` is the C expression that computes the layer. ``needs`` is an expression for the bytes of scratch memory
    that it wants. Plain firmware compares it with ``scratch``; firmware whose layers are counted does not.
    """

    region: Region
    given: list[tuple[str, Any]] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    scratch: int = LEAST_SCRATCH

    def operand(self, index: int, name: str) -> None:
        """Adds an operand of the layer, be it computed at run time or known."""
        operand, source = self.region.operands[index], self.region.root.sources[index]
        kind = f"const {C_TYPES[operand.info.dtype]} *{name}"
        if operand.constant is not None:
            self.given.append((kind, Constant(name, operand.constant)))
        else:
            number = next(n for n, tensor in enumerate(self.region.inputs) if tensor.name == source)
            self.given.append((kind, Input(number)))

    def constant(self, name: str, array: Any) -> None:
        """Adds an array of the layer's own."""
        data = np.ascontiguousarray(array)
        self.given.append((f"const {C_TYPES[str(data.dtype)]} *{name}", Constant(name, data)))

    def static(self, kind: str, name: str, *values: Any) -> None:
        """Adds a structure of numbers that are all known."""
        self.body.append(f"static const {kind} {name} = {fields(*values)};")

    def local(self, kind: str, name: str, initialiser: str) -> None:
        """Adds a structure that holds addresses."""
        self.body.append(f"const {kind} {name} = {initialiser};")

    def made(self, call: str, needs: str = "", *, returns: bool = True) -> Lowered:
        """The layer as a call of the function, which gives CMSIS-NN's status."""
        name = "cmsis_nn_" + re.sub(r"\W", "_", self.region.root.name)
        output = C_TYPES[self.region.output.dtype]
        given = [*self.given, (f"{output} *output", Output(0)), ("void *scratch", Scratch(0))]
        checks = [
            "#ifndef UACCEL_OBSERVE",
            f"    if ({needs} > {self.scratch}) {{",
            "        return -1;",
            "    }",
            "#endif",
        ]
        ends = [f"return (int32_t){call};"] if returns else [f"{call};", "return 0;"]
        lines = [f"    {line}" for line in ["(void)scratch;", *self.body]]
        lines += (checks if needs else []) + [f"    {line}" for line in ends]
        head = f"static int32_t {name}({', '.join(kind for kind, _ in given)})"
        source = "\n".join([head, "{", *lines, "}", ""])
        made = library_call(name, *(argument for _, argument in given))
        return Lowered((made,), scratch=self.scratch, source=Definition(name, source, ()))
