"""Defines an ONNX graph as plain data, and what is known of ONNX's operators by name; imports the onnx package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from uaccel.errors import ModelError, need
from uaccel.model import Array, TensorInfo, TensorSpec, layer_name
from uaccel.util.files import imported

# The graph as converters see it.

MICROSOFT = "com.microsoft"
STANDARD = ("", "ai.onnx")
# The element types that can be compiled.
DTYPES = (
    *("float32", "float16", "float64", "int8", "uint8", "int16", "uint16"),
    *("int32", "uint32", "int64", "uint64", "bool"),
)
FOUR_BITS = {"int4": "int8", "uint4": "uint8"}  # Types of constants alone, and the types that a module holds them in.


@dataclass(frozen=True, eq=False)
class Node:
    """Holds a node. ``inputs`` and ``outputs`` are names of tensors, empty for an optional one that is left out.

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
        need(name, f"input {position} is missing")
        return name

    def optional_input(self, position: int) -> str:
        """The name of the input at a position, empty where it is left out."""
        return self.inputs[position] if position < len(self.inputs) else ""

    @property
    def full_name(self) -> str:
        """The operator with its domain, where that is not ONNX's own."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def layer_name(self) -> str:
        return layer_name(self.op, self.index)

    @property
    def where(self) -> str:
        """The words by which errors and warnings call the node."""
        label = self.name or next((name for name in self.outputs if name), "no output")
        return f'node {self.index} {self.op} ("{label}")'


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    """Holds a graph. ``inferred`` has the types by ONNX's own shape inference, where they are static."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[str, ...]
    inferred: Mapping[str, TensorInfo]
    opset: int


# Groups of operators by name.

LEARNING: Final = "ai.onnx.ml"  # The domain of classical models, such as trees.
# Operators whose result has each element of the first input once.
MOVING: Final = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
# Operators whose results are elements of the first input, so that integers keep their scale.
SAME_VALUES: Final = (
    *MOVING,
    *("DepthToSpace", "Expand", "Gather", "MaxPool", "Slice", "SpaceToDepth", "Split", "Tile"),
)
RANDOM: Final = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
# Operators whose results' shapes depend on data, with at most a number for each element and axis of the input.
SMALLER: Final = ("Compress", "NonZero", "Unique")
DATA_DEPENDENT: Final = (*SMALLER, "AllClassNMS")  # All operators whose results' shapes depend on data.
# Operators whose inputs give the size of the result. With constant inputs they are computed at import.
SIZED: Final = ("BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "MelWeightMatrix", "Range")
# Operators that are not folded although their inputs are constant: later stages need the integers.
KEPT: Final = ("DequantizeLinear",)
# Operators that are expanded, because TVM's converters of these names are wrong or mean others.
DEFINED: Final = ("Attention", "RMSNormalization")
# Operators that NumPy computes in a few passes, without a Python loop over elements.
AT_ONCE: Final = frozenset(
    {
        *("Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape", "Cos"),
        *("CumSum", "DepthToSpace", "Div", "Equal", "Erf", "Exp", "Expand", "Flatten", "Floor", "Gather", "Greater"),
        *("GreaterOrEqual", "Identity", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min"),
        *("Mod", "Mul", "Neg", "Not", "Or", "Pad", "Pow", "QuantizeLinear", "Range", "Reciprocal", "ReduceL1"),
        *("ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Relu"),
        *("Reshape", "Round", "Shape", "Sigmoid", "Sign", "Sin", "Size", "Slice", "SpaceToDepth", "Split", "Sqrt"),
        *("Squeeze", "Sub", "Sum", "Tanh", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor"),
    }
)


# The onnx package, which is optional: only reading ONNX models needs it.


def onnx_package(name: str = "onnx") -> Any:
    """A module of the package, imported when it is first needed."""
    takes = "reading ONNX models takes the onnx package, and importing it"
    return imported(name, ModelError, takes, "install it: pip install 'uaccel[onnx]'")


def refusals() -> tuple[type[Exception], ...]:
    """The exceptions that ONNX's native code raises where a model is wrong."""
    checker, inference = onnx_package("onnx.checker"), onnx_package("onnx.shape_inference")
    return (checker.ValidationError, inference.InferenceError, RuntimeError, ValueError, TypeError)
