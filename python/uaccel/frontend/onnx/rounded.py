"""Recognises quantisation that a file spells out in float operators, as DeepQuant exports networks for Deeploy.

A step is ``Clip(Round(x / scale + zero_point))``: integers in floats. Convolutions and products then are of these
integers, and ``(sum - zero_point) * scale`` makes real numbers again. Here a step becomes ``QuantizeLinear``, and what
reads its integers reads a ``DequantizeLinear`` of them. The scale behind a sum goes to the weights and the bias, so
that the sum is an ordinary quantised layer. Values stay what they were, but for ties where a zero point is odd:
there ``QuantizeLinear`` rounds before it adds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from uaccel.frontend.onnx.graph import MOVING, STANDARD
from uaccel.model import Array

RANGES: Final = {(-128.0, 127.0): "int8", (0.0, 255.0): "uint8"}
WIDE: Final = "int32"  # Of biases, whose bounds are far beyond 8 bits.
QUANTISED: Final = ("QuantizeLinear", "DequantizeLinear")
_ARITHMETIC: Final[dict[str, Callable[..., Array]]] = {
    "Div": np.divide,
    "Mul": np.multiply,
    "Add": np.add,
    "Sub": np.subtract,
    "Round": np.rint,
    "Identity": np.asarray,
}


def recognised(onnx: Any, model: Any) -> None:
    """Rewrites the graph of a model in place, if it has such steps and no quantisation of ONNX's own."""
    graph = model.graph
    kinds = {node.op_type for node in graph.node}
    if "Round" in kinds and "Clip" in kinds and kinds.isdisjoint(QUANTISED):
        _Steps(onnx, graph).rewrite()


@dataclass(frozen=True)
class _Integers:
    """Describes a float tensor as (integers - zero point) * scale; ``values`` are the integers of a constant."""

    name: str
    dtype: str
    scale: Array = field(default_factory=lambda: np.ones((), np.float32))
    zero_point: int = 0
    axis: int = 0
    values: Array | None = None

    @property
    def plain(self) -> bool:
        """Whether the tensor is the integers themselves."""
        return self.scale.ndim == 0 and float(self.scale) == 1.0 and self.zero_point == 0


@dataclass(frozen=True)
class _Sum:
    """Holds a layer whose operands are integers in floats: its node, its weights and its bias."""

    node: Any
    weights: Array
    bias: Array | None
    axis: int  # Of the weights: that of output channels.
    channel: int  # Of the result, from its end: that of output channels.


class _Steps:
    def __init__(self, onnx: Any, graph: Any) -> None:
        self._onnx, self._graph = onnx, graph
        self._values = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self._makers = {name: node for node in graph.node for name in node.output}
        self._integers: dict[str, _Integers] = {}
        self._sums: dict[str, _Sum] = {}
        self._found = False

    def rewrite(self) -> None:
        made = [each for node in list(self._graph.node) for each in self._node(node)]
        if self._found:
            del self._graph.node[:]
            self._graph.node.extend(self._needed(made))

    def _node(self, node: Any) -> list[Any]:
        """Returns what takes the place of a node; what nobody reads any more is dropped at the end."""
        if node.domain not in STANDARD or len(node.output) != 1:
            return [node]
        if node.op_type in ("Conv", "Gemm", "MatMul"):
            self._note_sum(node)
        rules = {"Clip": self._clip, "Sub": self._shifted, "Mul": self._scaled, "Add": self._with_bias}
        rule = self._moved if node.op_type in MOVING else rules.get(node.op_type)
        found = rule(node) if rule is not None else None
        if found is None:
            self._fold(node)
        return [node] if found is None else found

    def _fold(self, node: Any) -> None:
        """Computes a node of constants, without which no weights and no scales are known."""
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            self._values[node.output[0]] = self._onnx.numpy_helper.to_array(node.attribute[0].t)
        given = [self._values.get(name) for name in node.input]
        known = [value for value in given if value is not None and value.dtype == np.float32]
        if given and len(known) == len(given) and node.op_type in _ARITHMETIC and _grows_not(known):
            with np.errstate(all="ignore"):
                self._values[node.output[0]] = np.asarray(_ARITHMETIC[node.op_type](*known), np.float32)
        elif given and len(known) == len(given) and node.op_type == "Transpose":
            order = next((list(entry.ints) for entry in node.attribute if entry.name == "perm"), None)
            if order is None or sorted(order) == list(range(known[0].ndim)):
                self._values[node.output[0]] = np.transpose(known[0], order)

    # Steps from real numbers to integers.

    def _clip(self, node: Any) -> list[Any] | None:
        bounds = [self._number(name) for name in node.input[1:3]]
        rounded = self._makers.get(node.input[0])
        if len(bounds) != 2 or None in bounds or rounded is None or rounded.op_type != "Round":
            return None
        low, high = (float(bound or 0) for bound in bounds)
        dtype = RANGES.get((low, high), WIDE if low <= -(2.0**30) and high >= 2.0**30 else "")
        known = self._values.get(node.input[0])
        if known is not None and dtype:
            return self._constant_step(node, np.clip(known, low, high), dtype)
        step = self._step(rounded.input[0]) if dtype in RANGES.values() else None
        if step is None:
            return None
        (real, scale, zero_point), (name, self._found) = step, (f"{node.output[0]}:integers", True)
        point = self._constant(f"{name}:zero", np.asarray(zero_point, dtype))
        made = self._onnx.helper.make_node(
            "QuantizeLinear", [real, self._constant(f"{name}:scale", scale), point], [name]
        )
        return [made, *self._dequantised(node.output[0], _Integers(name, dtype))]

    def _constant_step(self, node: Any, values: Array, dtype: str) -> list[Any] | None:
        if not np.isfinite(values).all():
            return None
        integers = np.clip(values.astype(np.float64), -(2**31), 2**31 - 1).astype(dtype)
        name = self._constant(f"{node.output[0]}:integers", integers)
        self._values[node.output[0]] = np.asarray(values, np.float32)
        self._integers[node.output[0]] = _Integers(name, dtype, values=integers)
        return [node]

    def _step(self, name: str) -> tuple[str, Array, int] | None:
        """Returns the real tensor, the scale and the zero point of what is rounded: ``x / scale + zero_point``."""
        zero_point, node = 0, self._makers.get(name)
        if node is not None and node.op_type == "Add":
            pair = self._with_number(node)
            if pair is None or not pair[1].is_integer():
                return None
            node, zero_point = self._makers.get(pair[0]), int(pair[1])
        if node is None or node.op_type != "Div":
            return None
        scale = self._number(node.input[1])
        fits = scale is not None and np.isfinite(scale) and scale > 0 and -128 <= zero_point <= 255
        return (node.input[0], np.asarray(scale, np.float32), zero_point) if fits else None

    # From integers back to real numbers.

    def _shifted(self, node: Any) -> list[Any] | None:
        known, number = self._integers.get(node.input[0]), self._number(node.input[1])
        if number == 0 and node.input[0] in self._sums:
            self._sums[node.output[0]] = self._sums[node.input[0]]
            return [node]
        if known is None or not known.plain or number is None or not number.is_integer():
            return None
        limits = np.iinfo(known.dtype)
        if not limits.min <= number <= limits.max or (known.dtype == WIDE and number):
            return None
        return self._dequantised(node.output[0], replace(known, zero_point=int(number)))

    def _scaled(self, node: Any) -> list[Any] | None:
        for name, other in (node.input, reversed(list(node.input))):
            factor = self._values.get(other)
            if factor is None or factor.dtype != np.float32 or not (np.isfinite(factor) & (factor > 0)).all():
                continue
            if name in self._sums:
                return self._layer(node.output[0], self._sums[name], factor)
            known = self._integers.get(name)
            if known is not None and known.scale.ndim == 0 and float(known.scale) == 1.0:
                return self._real(node.output[0], known, factor)
        return None

    def _moved(self, node: Any) -> list[Any] | None:
        """Moves the integers in place of the real numbers."""
        known = self._integers.get(node.input[0])
        if known is None or known.values is not None or known.scale.ndim:
            return None
        name = f"{node.output[0]}:integers"
        moved = self._onnx.NodeProto()
        moved.CopyFrom(node)
        moved.input[0], moved.output[0] = known.name, name
        return [moved, *self._dequantised(node.output[0], replace(known, name=name))]

    def _real(self, output: str, known: _Integers, factor: Array) -> list[Any] | None:
        if factor.size == 1:
            return self._dequantised(output, replace(known, scale=factor.reshape(())))
        rank = 0 if known.values is None else known.values.ndim
        axes = [axis for axis, extent in enumerate(factor.shape, rank - factor.ndim) if extent > 1]
        if known.values is None or len(axes) != 1 or axes[0] < 0 or known.values.shape[axes[0]] != factor.size:
            return None
        return self._dequantised(output, replace(known, scale=factor.reshape(-1), axis=axes[0]))

    def _dequantised(self, output: str, known: _Integers) -> list[Any]:
        self._integers[output] = known
        scale = self._constant(f"{output}:scale", known.scale)
        point = self._constant(f"{output}:zero", np.full(known.scale.shape, known.zero_point, known.dtype))
        axis = {"axis": known.axis} if known.scale.ndim else {}
        return [self._onnx.helper.make_node("DequantizeLinear", [known.name, scale, point], [output], **axis)]

    # Layers whose operands are integers, and whose result is scaled.

    def _note_sum(self, node: Any) -> None:
        data, weights = self._integers.get(node.input[0]), self._values.get(node.input[1])
        if data is None or weights is None or not data.plain or not _whole(weights, 128):
            return
        attributes = {entry.name: self._onnx.helper.get_attribute_value(entry) for entry in node.attribute}
        if any(attributes.get(name, 1) != 1 for name in ("alpha", "beta")) or attributes.get("transA"):
            return
        bias = self._values.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
        if len(node.input) > 2 and node.input[2] and (bias is None or not _whole(bias, 2**31)):
            return
        if node.op_type == "MatMul" and weights.ndim != 2:
            return
        first = node.op_type == "Conv" or bool(attributes.get("transB"))
        channel = weights.ndim - 1 if node.op_type == "Conv" else 1
        self._sums[node.output[0]] = _Sum(node, weights, bias, 0 if first else 1, channel)

    def _with_bias(self, node: Any) -> list[Any] | None:
        """An addition behind a product is its bias."""
        for name, other in (node.input, reversed(list(node.input))):
            known, bias = self._sums.get(name), self._values.get(other)
            fits = known is not None and known.bias is None and known.node.op_type == "MatMul"
            if fits and bias is not None and bias.ndim == 1 and _whole(bias, 2**31):
                assert known is not None
                self._sums[node.output[0]] = replace(known, bias=bias)
                return [node]
        return None

    def _layer(self, output: str, known: _Sum, factor: Array) -> list[Any] | None:
        """Makes the layer whose weights and bias have the factor as their scale."""
        channels = known.weights.shape[known.axis]
        along = [axis - factor.ndim for axis, extent in enumerate(factor.shape) if extent > 1]
        if factor.size != 1 and (along != [-known.channel] or factor.size != channels):
            return None
        scale = factor.reshape(() if factor.size == 1 else -1)
        integers = self._constant(f"{output}:weights:integers", known.weights.astype(np.int8))
        weights = f"{output}:weights"
        made = self._dequantised(weights, _Integers(integers, "int8", scale, axis=known.axis))
        operands, bias = [known.node.input[0], weights], f"{output}:bias"
        if known.bias is not None:
            kept = self._constant(f"{bias}:integers", known.bias.astype(np.int32))
            made += self._dequantised(bias, _Integers(kept, WIDE, scale))
        apart = known.bias is not None and known.node.op_type == "MatMul"
        layer = self._onnx.NodeProto()
        layer.CopyFrom(known.node)
        del layer.input[:], layer.output[:]
        layer.input.extend(operands + ([bias] if known.bias is not None and not apart else []))
        layer.output.append(f"{output}:product" if apart else output)
        made.append(layer)
        if apart:
            made.append(self._onnx.helper.make_node("Add", [f"{output}:product", bias], [output]))
        self._found = True
        return made

    # Constants, and what is left.

    def _number(self, name: str) -> float | None:
        value = self._values.get(name)
        return float(value.reshape(())) if value is not None and value.size == 1 else None

    def _with_number(self, node: Any) -> tuple[str, float] | None:
        """Returns the operand that is computed and the number that is added to it."""
        for name, other in (node.input, reversed(list(node.input))):
            number = self._number(other)
            if number is not None and name not in self._values:
                return name, number
        return None

    def _constant(self, name: str, value: Array) -> str:
        self._graph.initializer.append(
            self._onnx.numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)
        )
        return name

    def _needed(self, nodes: list[Any]) -> list[Any]:
        wanted, kept = {value.name for value in self._graph.output}, []
        for node in reversed(nodes):
            inner = any(entry.HasField("g") or entry.graphs for entry in node.attribute)
            if inner or wanted.intersection(node.output):
                wanted.update(node.input)
                kept.append(node)
        return kept[::-1]


def _grows_not(values: Sequence[Array]) -> bool:
    """Whether a result has no more elements than an operand: small files may ask for large tables."""
    try:
        return math.prod(np.broadcast_shapes(*(value.shape for value in values))) <= max(v.size for v in values)
    except ValueError:
        return False


def _whole(values: Array, limit: float) -> bool:
    """Whether all numbers are integers below a limit, and at least its negative."""
    if values.dtype != np.float32:
        return False
    return bool(np.all(np.isfinite(values) & (values == np.rint(values)) & (values < limit) & (values >= -limit)))
