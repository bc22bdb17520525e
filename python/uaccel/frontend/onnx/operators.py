"""What is known of ONNX's operators, by name."""

from __future__ import annotations

from typing import Final

LEARNING: Final = "ai.onnx.ml"
"""The domain of models that are no networks."""
MOVING: Final = ("Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Their result has the elements of their first input, each once."""
SAME_VALUES: Final = (
    *MOVING,
    *("DepthToSpace", "Expand", "Gather", "MaxPool", "Slice", "SpaceToDepth", "Split", "Tile"),
)
"""Their results are elements of their first input, so that integers keep their meaning."""
RANDOM: Final = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
SMALLER: Final = ("Compress", "NonZero", "Unique")
"""Their results' shapes depend on data, and hold at most a number for each element and axis of the input."""
DATA_DEPENDENT: Final = (*SMALLER, "AllClassNMS")
"""The shapes of their results depend on data."""
SIZED: Final = ("BlackmanWindow", "ConstantOfShape", "HammingWindow", "HannWindow", "Range")
"""Their inputs say how large their results are; of constants they are computed at import."""
KEPT: Final = ("DequantizeLinear",)
"""Stay although their inputs are constant: the integers must remain visible to later stages."""
DEFINED: Final = ("Attention", "RMSNormalization")
"""TVM has others of these names, or wrong ones; ONNX defines them by simpler operators."""
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
"""Numpy computes them in a pass or a few."""
