"""Float networks with the same seeded weights as TFLite, ONNX and PyTorch files: what each front end makes of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from support.models.tflite_writer import ModelBuilder, Tensor

Array = NDArray[Any]
RELU6: Final = "RELU6"


@dataclass(frozen=True)
class Layer:
    """``kind``: ``conv``, ``depthwise``, ``add`` (to the result of the layer ``back`` places before), ``pool`` (the
    mean of all pixels), ``dense``."""

    kind: str
    channels: int = 0
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    activation: str = "NONE"
    back: int = 0


@dataclass(frozen=True)
class FloatNetwork:
    """``shape`` of the input: height, width, channels. ``half``: files hold it in half precision."""

    shape: tuple[int, int, int]
    layers: Sequence[Layer]
    half: bool = False

    def weights(self) -> list[tuple[Array, Array] | None]:
        """Of each layer that has some: OHWI, of a depthwise one 1HWC, of a dense one OI; and biases."""
        rng, found, channels = np.random.default_rng(5), list[tuple[Array, Array] | None](), self.shape[2]
        for layer in self.layers:
            if layer.kind in ("add", "pool"):
                found.append(None)
                continue
            shapes = {
                "conv": (layer.channels, *layer.kernel, channels),
                "depthwise": (1, *layer.kernel, channels),
                "dense": (layer.channels, channels),
            }
            channels = layer.channels or channels
            fan = np.prod(shapes[layer.kind][1 if layer.kind != "depthwise" else 0 :]) / (
                channels if layer.kind == "depthwise" else 1
            )
            kernel = rng.normal(size=shapes[layer.kind], scale=np.sqrt(2 / fan)).astype(np.float32)
            found.append((kernel, rng.normal(size=channels, scale=0.3).astype(np.float32)))
        if self.half:
            return [w and (_halved(w[0]), _halved(w[1])) for w in found]
        return found

    def sizes(self) -> list[tuple[int, int, int]]:
        """Of each layer's result, with padding as TFLite's SAME."""
        height, width, channels = self.shape
        found = []
        for layer in self.layers:
            height, width = -(-height // layer.stride), -(-width // layer.stride)
            if layer.kind in ("pool", "dense"):
                height = width = 1
            channels = layer.channels or channels
            found.append((height, width, channels))
        return found


def _halved(value: Array) -> Array:
    return value.astype(np.float16).astype(np.float32)


def pads(extent: int, kernel: int, stride: int) -> tuple[int, int]:
    total = max((-(-extent // stride) - 1) * stride + kernel - extent, 0)
    return total // 2, total - total // 2


def keyword(channels: int = 64, blocks: int = 4, frames: int = 49) -> FloatNetwork:
    """DS-CNN: separable convolutions on ten features a frame."""
    layers = [Layer("conv", channels, (10, 4), 2, "RELU")]
    for _ in range(blocks):
        layers += [Layer("depthwise", 0, (3, 3), 1, "RELU"), Layer("conv", channels, activation="RELU")]
    return FloatNetwork((frames, 10, 1), [*layers, Layer("pool"), Layer("dense", 12)])


def mobilenet(size: int = 32, blocks: int = 5) -> FloatNetwork:
    """Inverted residuals, as in MobileNet V2 with few channels."""
    layers, inputs = [Layer("conv", 8, (3, 3), 2, RELU6)], 8
    for outputs, stride in ((8, 1), (12, 2), (12, 1), (16, 2), (16, 1))[:blocks]:
        layers += [Layer("conv", 4 * inputs, activation=RELU6), Layer("depthwise", 0, (3, 3), stride, RELU6)]
        layers.append(Layer("conv", outputs))
        if stride == 1 and inputs == outputs:
            layers.append(Layer("add", back=3))
        inputs = outputs
    return FloatNetwork(
        (size, size, 3), [*layers, Layer("conv", 48, activation=RELU6), Layer("pool"), Layer("dense", 10)]
    )


def as_tflite(network: FloatNetwork) -> bytes:
    builder, weights, sizes = ModelBuilder(), network.weights(), network.sizes()
    made: list[Tensor] = [builder.input("x", (1, *network.shape), "float32")]
    for number, (layer, size) in enumerate(zip(network.layers, sizes, strict=True)):
        shape = (1, size[2]) if layer.kind in ("dense", "pool") else (1, *size)
        result = builder.tensor(f"{layer.kind}_{number}", shape, "float32")
        _append(builder, layer, number, weights[number], made, result, half=network.half)
        made.append(result)
    return builder.build(made[-1])


def _append(
    builder: ModelBuilder,
    layer: Layer,
    number: int,
    weights: tuple[Array, Array] | None,
    made: Sequence[Tensor],
    result: Tensor,
    *,
    half: bool,
) -> None:
    common: dict[str, Any] = {"padding": "SAME", "stride_h": layer.stride, "stride_w": layer.stride}
    activation: dict[str, Any] = {"fused_activation_function": layer.activation}
    if weights is None:
        if layer.kind == "add":
            builder.op("ADD", [made[-1], made[-1 - layer.back]], [result], activation)
        else:
            height, width, channels = made[-1].shape[1:]
            window = {**common, "filter_height": height, "filter_width": width, "padding": "VALID"}
            pooled = builder.tensor(f"mean_{number}", (1, 1, 1, channels), "float32")
            builder.op("AVERAGE_POOL_2D", [made[-1]], [pooled], window)
            shape = builder.constant(f"shape_{number}", np.asarray(result.shape, np.int32))
            builder.op("RESHAPE", [pooled, shape], [result])
        return
    constant = _half_constant if half else ModelBuilder.constant
    constants = [constant(builder, f"{name}_{number}", value) for name, value in zip("wb", weights, strict=True)]
    kinds = {"conv": "CONV_2D", "depthwise": "DEPTHWISE_CONV_2D", "dense": "FULLY_CONNECTED"}
    if layer.kind != "dense":
        activation |= common
    if layer.kind == "depthwise":
        activation["depth_multiplier"] = 1
    builder.op(kinds[layer.kind], [made[-1], *constants], [result], activation)


def _half_constant(builder: ModelBuilder, name: str, value: Array) -> Tensor:
    """As TFLite's converter writes float16 models."""
    wide = builder.tensor(name, value.shape, "float32")
    builder.op("DEQUANTIZE", [builder.constant(f"{name}_half", value.astype(np.float16))], [wide])
    return wide


def as_onnx(network: FloatNetwork) -> Any:
    """An ONNX model with NCHW input."""
    from support.models.onnx_networks import Net

    height, width, channels = network.shape
    net, size, made = Net(1, channels, height, width), (height, width), ["x"]
    for layer, weights, after in zip(network.layers, network.weights(), network.sizes(), strict=True):
        if layer.kind == "add":
            net.add("Add", net.made, made[-1 - layer.back])
        elif layer.kind == "pool":
            net.add("GlobalAveragePool")
        elif weights is not None and layer.kind == "dense":
            net.add("Flatten")
            net.add("Gemm", net.made, *map(net.constant, weights), transB=1)
        elif weights is not None:
            kernel, bias = weights
            turned = kernel.transpose((3, 0, 1, 2) if layer.kind == "depthwise" else (0, 3, 1, 2))
            (top, bottom), (left, right) = (
                pads(extent, window, layer.stride) for extent, window in zip(size, layer.kernel, strict=True)
            )
            group = len(turned) if layer.kind == "depthwise" else 1
            attributes: dict[str, Any] = {"pads": [top, left, bottom, right], "strides": [layer.stride] * 2}
            net.add("Conv", net.made, net.constant(turned), net.constant(bias), group=group, **attributes)
        if layer.activation == "RELU":
            net.add("Relu")
        elif layer.activation == RELU6:
            net.add("Clip", net.made, *(net.constant(np.float32(end)) for end in (0, 6)))
        made.append(net.made)
        size = after[:2]
    if not network.half:
        return net.model()
    from onnxruntime.transformers.float16 import convert_float_to_float16

    return convert_float_to_float16(net.model())


def as_torch(network: FloatNetwork) -> tuple[Any, Any]:
    """A module, and an input for it."""
    from support.models.exported import Net, random, torch

    functional = torch.nn.functional
    kind = torch.float16 if network.half else torch.float32
    tensors = [w and tuple(torch.tensor(np.ascontiguousarray(p), dtype=kind) for p in w) for w in network.weights()]
    height, width, channels = network.shape

    def compute(x: Any) -> Any:
        made = [x]
        for layer, weights in zip(network.layers, tensors, strict=True):
            x = _torch_layer(functional, layer, weights, made)
            x = {"RELU": functional.relu, RELU6: functional.relu6}.get(layer.activation, lambda value: value)(x)
            made.append(x)
        return x

    return Net(compute), random(1, channels, height, width).to(kind)


def _torch_layer(functional: Any, layer: Layer, weights: Any, made: Sequence[Any]) -> Any:
    x = made[-1]
    if layer.kind == "add":
        return x + made[-1 - layer.back]
    if layer.kind == "pool":
        return x.mean((2, 3))
    if layer.kind == "dense":
        return functional.linear(x, *weights)
    kernel, bias = weights
    turned = kernel.permute((3, 0, 1, 2) if layer.kind == "depthwise" else (0, 3, 1, 2)).contiguous()
    sides = [pads(int(x.shape[axis]), layer.kernel[axis - 2], layer.stride) for axis in (3, 2)]
    padded = functional.pad(x, [end for pair in sides for end in pair])
    return functional.conv2d(padded, turned, bias, layer.stride, groups=len(turned) if layer.kind == "depthwise" else 1)


NETWORKS: Mapping[str, Callable[[], FloatNetwork]] = {"keyword": keyword, "mobilenet": mobilenet}
FORMATS: Final = ("tflite", "onnx", "pt2")


def written(network: FloatNetwork, form: str, folder: Path) -> Path:
    """The network as a file of one of ``FORMATS``."""
    path = folder / f"network.{form}"
    if form == "tflite":
        path.write_bytes(as_tflite(network))
    elif form == "onnx":
        path.write_bytes(as_onnx(network).SerializeToString())
    else:
        from support.models.exported import exported, save

        module, given = as_torch(network)
        save(exported(module, [given]), path)
    return path
