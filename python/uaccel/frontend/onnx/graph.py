"""An ONNX graph as plain data, and which operators and package there are."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from uaccel.errors import ModelError
from uaccel.model import Array, TensorInfo, TensorSpec, layer_name

# An ONNX graph as plain data: what the converters see of a file.

MICROSOFT = "com.microsoft"
STANDARD = ("", "ai.onnx")
# The element types that can be compiled.
DTYPES = (
    *("float32", "float16", "float64", "int8", "uint8", "int16", "uint16"),
    *("int32", "uint32", "int64", "uint64", "bool"),
)
FOUR_BITS = {"int4": "int8", "uint4": "uint8"}  # Types of constants alone, and what holds their numbers in a module.


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
class OnnxGraph:
    """``inferred`` is what ONNX's own shape inference says of the tensors, where that is one static shape."""

    nodes: tuple[Node, ...]
    constants: Mapping[str, Array]
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[str, ...]
    inferred: Mapping[str, TensorInfo]
    opset: int


# What is known of ONNX's operators, by name.

LEARNING: Final = "ai.onnx.ml"  # The domain of models that are no networks.
# Their result has the elements of their first input, each once.
MOVING: Final = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
# Their results are elements of their first input, so that integers keep their meaning.
SAME_VALUES: Final = (
    *MOVING,
    *("DepthToSpace", "Expand", "Gather", "MaxPool", "Slice", "SpaceToDepth", "Split", "Tile"),
)
RANDOM: Final = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
# Their results' shapes depend on data, and hold at most a number for each element and axis of the input.
SMALLER: Final = ("Compress", "NonZero", "Unique")
DATA_DEPENDENT: Final = (*SMALLER, "AllClassNMS")  # The shapes of their results depend on data.
# Their inputs say how large their results are; of constants they are computed at import.
SIZED: Final = ("BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "Range")
# Stay although their inputs are constant: the integers must remain visible to later stages.
KEPT: Final = ("DequantizeLinear",)
# TVM has others of these names, or wrong ones; ONNX defines them by simpler operators.
DEFINED: Final = ("Attention", "RMSNormalization")
# Numpy computes them in a pass or a few.
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


# The onnx package, which is an extra: whoever has no ONNX models needs none of it.


def onnx_package(name: str = "onnx") -> Any:
    """A module of the package, imported when it is first needed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ModelError(
            f"reading ONNX models takes the onnx package, and importing it fails ({error}); "
            "install it: pip install 'uaccel[onnx]'"
        ) from error


def refusals() -> tuple[type[Exception], ...]:
    """What ONNX's native code raises where a model is wrong."""
    checker, inference = onnx_package("onnx.checker"), onnx_package("onnx.shape_inference")
    return (checker.ValidationError, inference.InferenceError, RuntimeError, ValueError, TypeError)
