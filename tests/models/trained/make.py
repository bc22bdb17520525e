"""Train the networks and write their files: `python tests/models/trained/make.py [DIRECTORY]`, by default next to this.

It takes PyTorch, torchao and ONNX Runtime, and half a minute. The files are the same bytes each time on one computer
with one version of those; elsewhere sums round otherwise, and training goes another way. So the files are committed. A
new training must make networks that tests/networks/test_trained.py accepts: they know what they learnt.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from models import layers
from models.network import Network, Value
from models.quantise import activation_range
from models.trained import nets, signals
from models.trained.nets import Array, fit, folded
from support.models.exported import save
from support.models.quantised_modules import by_onnx_runtime, by_pt2e
from support.models.tflite_writer import ModelBuilder, Tensor
from support.models.torch_networks import xnnpack

CALIBRATED = 200
"""Samples."""


def shapes() -> bytes:
    """Pictures to one of six shapes."""
    images, _, labels = signals.pictures(1, 2400)
    given = images.transpose(0, 3, 1, 2)
    trained = fit(nets.Classifier(), given, labels, functional.cross_entropy, epochs=40, pull=0.3)
    net = Network("uaccel shapes: which of six shapes does a picture show?")
    value = net.input("picture", images[:CALIBRATED].astype(np.float64))
    for number, layer in enumerate(trained.body):
        before, value = value, _convolution(net, value, layer)
        if number == 4:
            stem = value
    value = layers.add(net, stem, value)
    assert before.shape == stem.shape
    value = layers.mean(net, value, (1, 2), keep_dims=False)
    head = _double(trained.head)
    return net.build(layers.softmax(net, layers.dense(net, value, *head, per_channel=True)))


def _convolution(net: Network, value: Value, layer: Any) -> Value:
    """From PyTorch's order and padding to TFLite's: a stride of two pads one row less on top."""
    weights, bias = folded(layer)
    taps, stride = layer[0].kernel_size[0], layer[0].stride
    activation = "RELU6" if len(layer) > 2 else "NONE"
    padding = "SAME"
    if taps > 1:
        value, padding = layers.pad(net, value, (1, 1), (1, 1)), "VALID"
    if layer[0].groups > 1:
        weights = weights.transpose(1, 2, 3, 0)
        options = {"stride": stride, "padding": padding, "activation": activation}
        return layers.depthwise_conv2d(net, value, weights, bias, **options)
    weights = weights.transpose(0, 2, 3, 1)
    return layers.conv2d(net, value, weights, bias, stride=stride, padding=padding, activation=activation)


def spectrum() -> bytes:
    """Spectra through six numbers to themselves."""
    levels = signals.spectra(1, 3200)
    trained = fit(nets.autoencoder(), levels, levels, functional.mse_loss, epochs=40, pull=0.02)
    net = Network("uaccel spectrum: an autoencoder of a machine's hum")
    value = net.input("levels", levels[:CALIBRATED].astype(np.float64))
    for layer in trained[:-1]:
        value = layers.dense(net, value, *folded(layer), activation="RELU")
    return net.build(layers.dense(net, value, *_double(trained[-1])))


def word() -> bytes:
    """One frame at a time to a word."""
    frames, labels = signals.words(1, 2000)
    trained = fit(nets.spotter(), frames, labels, _last, epochs=30, pull=0.0)
    model = ModelBuilder("uaccel word: one of five words, a frame at a time")
    seen = torch.from_numpy(frames[:CALIBRATED])
    known = activation_range(frames, "int8")
    frame = model.input("frame", (1, signals.FEATURES), "int8", scale=known.scale, zero_point=known.zero_point)
    value, scale = frame, known.scale
    for number, layer in enumerate(trained[:2]):
        value, scale = _svdf(model, f"layer_{number}", value, scale, layer, seen)
        seen = layer(seen).detach()
    weights, bias = _double(trained[2])
    integers, peak = _constant(weights, 127)
    logits = activation_range(seen.double().numpy() @ weights.T + bias, "int8")
    scores = model.tensor("scores", (1, len(bias)), "int8", scale=logits.scale, zero_point=logits.zero_point)
    counts = np.rint(bias / (scale * peak)).astype(np.int32)
    constants = [model.constant("weights", integers.astype(np.int8), scale=peak)]
    constants.append(model.constant("bias", counts, scale=scale * peak))
    model.op("FULLY_CONNECTED", [value, *constants], [scores], {"fused_activation": "NONE"})
    result = model.tensor("word", (1, len(bias)), "int8", scale=2.0**-8, zero_point=-128)
    model.op("SOFTMAX", [scores], [result], {"beta": 1.0})
    return model.build(result)


def _last(results: Any, labels: Any) -> Any:
    return functional.cross_entropy(results[:, -1], labels)


def _svdf(model: ModelBuilder, name: str, source: Tensor, scale: float, layer: Any, seen: Any) -> tuple[Tensor, float]:
    """The layer, and the scale of what it gives."""
    features, feature_scale = _constant(layer.features.weight.detach().double().numpy(), 127)
    times, time_scale = _constant(layer.times.detach().double().numpy(), 32767)
    state_scale = float(layer.features(seen).detach().abs().max()) / 32767
    bias = np.rint(layer.bias.detach().double().numpy() / (state_scale * time_scale)).astype(np.int32)
    result = activation_range(layer(seen).detach().numpy(), "int8")
    output = model.tensor(name, (1, len(times)), "int8", scale=result.scale, zero_point=result.zero_point)
    arguments = [
        source,
        model.constant(f"{name}_features", features.astype(np.int8), scale=feature_scale),
        model.constant(f"{name}_times", times.astype(np.int16), scale=time_scale),
        model.constant(f"{name}_bias", bias, scale=state_scale * time_scale),
        model.variable(f"{name}_state", (1, times.size), "int16", scale=state_scale),
    ]
    model.op("SVDF", arguments, [output], {"rank": 1, "fused_activation": "RELU"})
    return output, result.scale


def _constant(weights: Array, most: int) -> tuple[Array, float]:
    scale = float(np.float32(np.abs(weights).max() / most))
    return np.rint(weights / scale), scale


def _double(layer: Any) -> tuple[Array, Array]:
    return layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()


def denoise() -> bytes:
    """Pictures without their noise, quantised by ONNX Runtime."""
    noisy, clean, _ = signals.pictures(2, 1200)
    given, wanted = noisy.transpose(0, 3, 1, 2), clean.transpose(0, 3, 1, 2)
    trained = fit(nets.Denoiser(), given, wanted, functional.mse_loss, epochs=12, pull=0.3)
    samples = [(torch.from_numpy(sample[None]),) for sample in given[:CALIBRATED]]
    with tempfile.TemporaryDirectory() as folder:
        return by_onnx_runtime(trained, [(1, 1, 16, 16)], Path(folder), "QUInt8", samples).read_bytes()


def listen() -> bytes:
    """Whole words, quantised by PT2E as XNNPACK wants it."""
    frames, labels = signals.words(2, 2000)
    given = np.ascontiguousarray(frames.transpose(0, 2, 1))
    trained = fit(nets.Listener(), given, labels, functional.cross_entropy, epochs=20, pull=0.5)
    samples = [(torch.from_numpy(sample[None]),) for sample in given[:CALIBRATED]]
    with tempfile.TemporaryDirectory() as folder:
        file = by_pt2e(trained, [given[:1].shape], Path(folder), xnnpack, samples)
        program = torch.export.load(file)
        for node in program.graph.nodes:
            node.meta = {key: node.meta[key] for key in ("val", "tensor_meta") if key in node.meta}
        return save(program, file).read_bytes()


FILES: dict[str, Callable[[], bytes]] = {
    "shapes.tflite": shapes,
    "spectrum.tflite": spectrum,
    "word.tflite": word,
    "denoise.onnx": denoise,
    "listen.pt2": listen,
}


def main() -> None:
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    torch.set_num_threads(1)
    for name, make in FILES.items():
        torch.manual_seed(0)
        content = make()
        (directory / name).write_bytes(content)
        print(f"{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
