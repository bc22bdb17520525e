"""Small ONNX networks, float and as ONNX Runtime's static quantiser writes them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from support.models.onnx_rows import Array


class Net:
    """Nodes in order, with seeded weights; ``made`` is the name of the last tensor."""

    def __init__(self, *shape: int | str, seed: int = 0) -> None:
        self.onnx: Any = pytest.importorskip("onnx", reason="the onnx package is not installed")
        self.rng = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs = [self.onnx.helper.make_tensor_value_info("x", 1, shape)]
        self.made = "x"

    def weights(self, *shape: int, gain: float = 1.0) -> str:
        fan = max(1, int(np.prod(shape[1:])))
        return self.constant((self.rng.standard_normal(shape) * gain / np.sqrt(fan)).astype(np.float32))

    def constant(self, value: npt.ArrayLike) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """A node; without inputs it reads the last tensor."""
        name = f"t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs or [self.made]), [name], **attributes))
        self.made = name
        return name

    def conv(self, channels: int, inputs: int, kernel: int = 3, **attributes: Any) -> str:
        group = attributes.get("group", 1)
        pads = [kernel // 2] * 4
        weights = self.weights(channels, inputs // group, kernel, kernel)
        return self.add("Conv", self.made, weights, self.weights(channels, gain=0.1), **({"pads": pads} | attributes))

    def model(self, opset: int = 17) -> Any:
        helper = self.onnx.helper
        output = helper.make_tensor_value_info(self.made, 1, None)
        graph = helper.make_graph(self.nodes, "net", self.inputs, [output], self.constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        return self.onnx.shape_inference.infer_shapes(made)


def convolutional(batch: int | str = 1) -> Net:
    """Convolutions as in MobileNet, a residual sum, pools, a classifier."""
    net = Net(batch, 3, 16, 16)
    net.conv(8, 3, strides=[2, 2])
    first = net.add("Relu")
    net.conv(8, 8, group=8)
    net.add("Clip", net.made, net.constant(np.float32(0)), net.constant(np.float32(6)))
    net.conv(8, 8, 1)
    net.add("Add", net.made, first)
    net.add("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    net.add("GlobalAveragePool")
    net.add("Flatten")
    net.add("Gemm", net.made, net.weights(10, 8), net.weights(10), transB=1)
    return net


def transformer(batch: int | str = 1, length: int | str = 6) -> Net:
    """One encoder layer over tokens of 8 numbers, with the shape arithmetic that exporters write."""
    net = Net(batch, length, 8)
    source = "x"
    normal = net.add("LayerNormalization", source, net.weights(8), net.weights(8))
    heads = [_heads(net, normal) for _ in range(3)]
    keys = net.add("Transpose", heads[1], perm=[0, 1, 3, 2])
    scores = net.add("MatMul", heads[0], keys)
    net.add("Div", scores, net.constant(np.float32(2.0)))
    share = net.add("Softmax", axis=-1)
    net.add("MatMul", share, heads[2])
    net.add("Transpose", perm=[0, 2, 1, 3])
    net.add("Reshape", net.made, net.constant(np.asarray([0, 0, 8], np.int64)))
    net.add("MatMul", net.made, net.weights(8, 8))
    attended = net.add("Add", net.made, source)
    net.add("LayerNormalization", attended, net.weights(8), net.weights(8))
    wide = net.add("MatMul", net.made, net.weights(8, 16))
    net.add("Div", wide, net.constant(np.float32(np.sqrt(2))))
    net.add("Erf")
    net.add("Add", net.made, net.constant(np.float32(1)))
    net.add("Mul", net.made, wide)
    net.add("Mul", net.made, net.constant(np.float32(0.5)))
    net.add("MatMul", net.made, net.weights(16, 8))
    net.add("Add", net.made, attended)
    net.add("ReduceMean", axes=[1], keepdims=0)
    return net


def _heads(net: Net, source: str) -> str:
    """[N,L,8] to [N,2,L,4], by a shape that is computed from the tensor's own."""
    projected = net.add("MatMul", source, net.weights(8, 8))
    net.add("Shape", projected)
    length = net.add("Gather", net.made, net.constant(np.asarray(1, np.int64)))
    axis = net.constant(np.asarray([0], np.int64))
    length = net.add("Unsqueeze", length, axis)
    net.add("Shape", projected)
    net.add("Gather", net.made, net.constant(np.asarray(0, np.int64)))
    batch = net.add("Unsqueeze", net.made, axis)
    shape = net.add("Concat", batch, length, net.constant(np.asarray([2, 4], np.int64)), axis=0)
    net.add("Reshape", projected, shape)
    return net.add("Transpose", perm=[0, 2, 1, 3])


def temporal() -> Net:
    """One-dimensional convolutions over a signal: wide ones, one of each channel by itself, a classifier."""
    net, inputs = Net(1, 1, 128), 1
    for channels, kernel, group in ((16, 9, 1), (32, 5, 1), (32, 3, 32), (48, 1, 1)):
        weights = net.weights(channels, inputs // group, kernel)
        pads, strides = [kernel // 2] * 2, [2]
        bias = net.weights(channels, gain=0.1)
        net.add("Conv", net.made, weights, bias, strides=strides, pads=pads, group=group)
        net.add("Relu")
        inputs = channels
    net.add("GlobalAveragePool")
    net.add("Flatten")
    net.add("Gemm", net.made, net.weights(5, inputs), net.weights(5), transB=1)
    return net


def vision_transformer() -> Net:
    """Patches of 4x4 pixels of an image, and two layers of four heads (ViT, Dosovitskiy et al. 2020, reduced)."""
    net, width = Net(1, 3, 32, 32), 48
    net.add("Conv", "x", net.weights(width, 3, 4, 4), net.weights(width, gain=0.1), strides=[4, 4])
    net.add("Reshape", net.made, net.constant(np.asarray([1, width, 64], np.int64)))
    net.add("Transpose", net.made, perm=[0, 2, 1])
    return _encoded(net, 64, width, 4)


def keyword_transformer() -> Net:
    """Frames of forty features, and two of the twelve layers of KWT-1 (Berg et al. 2021)."""
    net = Net(1, 49, 40)
    net.add("MatMul", "x", net.weights(40, 64))
    return _encoded(net, 49, 64, 1)


def _encoded(net: Net, length: int, width: int, heads: int) -> Net:
    net.add("Add", net.made, net.weights(1, length, width))
    for _ in range(2):
        source = net.made
        net.add("LayerNormalization", source, net.weights(width), net.weights(width))
        attended = net.add("Add", _attention(net, net.made, width, heads), source)
        net.add("LayerNormalization", attended, net.weights(width), net.weights(width))
        wide = _linear(net, net.made, width, 2 * width)
        net.add("Div", wide, net.constant(np.float32(np.sqrt(2))))
        net.add("Erf")
        net.add("Add", net.made, net.constant(np.float32(1)))
        net.add("Mul", net.made, wide)
        net.add("Mul", net.made, net.constant(np.float32(0.5)))
        net.add("Add", _linear(net, net.made, 2 * width, width), attended)
    net.add("ReduceMean", net.made, axes=[1], keepdims=0)
    net.add("Gemm", net.made, net.weights(10, width), net.weights(10), transB=1)
    return net


def _linear(net: Net, source: str, inputs: int, outputs: int) -> str:
    product = net.add("MatMul", source, net.weights(inputs, outputs))
    return net.add("Add", product, net.weights(outputs, gain=0.1))


def _attention(net: Net, source: str, width: int, heads: int) -> str:
    shape = net.constant(np.asarray([0, 0, heads, width // heads], np.int64))
    parts = []
    for _ in range(3):
        apart = net.add("Reshape", _linear(net, source, width, width), shape)
        parts.append(net.add("Transpose", apart, perm=[0, 2, 1, 3]))
    keys = net.add("Transpose", parts[1], perm=[0, 1, 3, 2])
    scores = net.add("MatMul", parts[0], keys)
    net.add("Div", scores, net.constant(np.float32(np.sqrt(width / heads))))
    net.add("Softmax", axis=-1)
    net.add("MatMul", net.made, parts[2])
    net.add("Transpose", perm=[0, 2, 1, 3])
    joined = net.add("Reshape", net.made, net.constant(np.asarray([0, 0, width], np.int64)))
    return _linear(net, joined, width, width)


def unet() -> Net:
    """Down, up by a transposed convolution and by resizing, joined with what came before."""
    net = Net(1, 3, 8, 8)
    net.conv(4, 3)
    skip = net.add("Relu")
    net.conv(8, 4, strides=[2, 2])
    down = net.add("LeakyRelu", alpha=0.1)
    up = net.add("ConvTranspose", down, net.weights(8, 4, 2, 2), strides=[2, 2])
    scales = net.constant(np.asarray([1, 1, 2, 2], np.float32))
    wide = net.add("Resize", down, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
    net.add("Concat", skip, up, wide, axis=1)
    net.conv(2, 16, 1)
    net.add("Sigmoid")
    return net


class _Samples:
    """What the quantiser calibrates with."""

    def __init__(self, shape: Sequence[int]) -> None:
        rng = np.random.default_rng(7)
        self._left = iter([{"x": rng.standard_normal(shape).astype(np.float32)} for _ in range(4)])

    def get_next(self) -> dict[str, Array] | None:
        return next(self._left, None)


def quantised(net: Net, folder: Path, form: str, activations: str, *, per_channel: bool) -> Path:
    """The network as ``quantize_static`` writes it: ``form`` QDQ or QOperator, ``activations`` QUInt8 or QInt8."""
    quantization = pytest.importorskip("onnxruntime.quantization", reason="onnxruntime is not installed")
    float_path, path = folder / "float.onnx", folder / f"{form}_{activations}.onnx"
    model = net.model()
    float_path.write_bytes(model.SerializeToString())
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    logging.disable(logging.WARNING)  # advice on preparing models, which these need not
    try:
        quantization.quantize_static(
            float_path,
            path,
            _Samples(shape),
            quant_format=quantization.QuantFormat[form],
            activation_type=quantization.QuantType[activations],
            weight_type=quantization.QuantType.QInt8,
            per_channel=per_channel,
        )
    finally:
        logging.disable(logging.NOTSET)
    return path
