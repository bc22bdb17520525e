"""An ONNX graph as plain data: what the converters see of a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from uaccel.errors import ModelError
from uaccel.model import Array, TensorInfo, TensorSpec, layer_name

MICROSOFT = "com.microsoft"
STANDARD = ("", "ai.onnx")
DTYPES = (
    *("float32", "float16", "float64", "int8", "uint8", "int16", "uint16"),
    *("int32", "uint32", "int64", "uint64", "bool"),
)
"""The element types that can be compiled."""
FOUR_BITS = {"int4": "int8", "uint4": "uint8"}
"""Types of constants alone, and what holds their numbers in a module."""


@dataclass(frozen=True, eq=False)
class Node:
    """``inputs`` and ``outputs`` are names of tensors, empty for an optional one that is left out.

    ``attributes`` holds Python values: strings as text, lists as tuples, tensors as arrays; ``proto`` is the file's.
    """

    index: int
    op: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    proto: Any = field(repr=False)

    def required_input(self, position: int) -> str:
        name = self.optional_input(position)
        if not name:
            raise ModelError(f"input {position} is missing")
        return name

    def optional_input(self, position: int) -> str:
        """Empty where it is left out."""
        return self.inputs[position] if position < len(self.inputs) else ""

    @property
    def full_name(self) -> str:
        """With its domain, where that is not ONNX's own."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def layer_name(self) -> str:
        return layer_name(self.op, self.index)

    @property
    def where(self) -> str:
        """How errors and warnings call it."""
        label = self.name or next((name for name in self.outputs if name), "no output")
        return f'node {self.index} {self.op} ("{label}")'


@dataclass(frozen=True, eq=False)
class Graph:
    """``inferred`` is what ONNX's own shape inference says of the tensors, where that is one static shape."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[str, ...]
    inferred: Mapping[str, TensorInfo]
    opset: int
