"""Networks as DeepQuant exports them for Deeploy become layers of integers, which equal ONNX Runtime on the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.onnx_rows import Array
from support.run.command import Call, call_in
from uaccel.frontend import import_model
from uaccel.frontend.onnx.rounded import recognised
from uaccel.runner.onnx_runtime import session_of
from uaccel.tvm_api.executor import Executor

onnx = pytest.importorskip("onnx")


class Network:
    """A graph of float operators under construction; each method gives the name of its result."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.shape, self.rng = shape, np.random.default_rng(7)

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def quantised(self, x: str, scale: Any, low: float = -128, high: float = 127, zero: float = 0) -> str:
        shifted = self.op("Add", self.op("Div", x, self.constant(scale)), self.constant(zero))
        return self.op("Clip", self.op("Round", shifted), self.constant(low), self.constant(high))

    def real(self, x: str, scale: Any, zero: float = 0) -> str:
        return self.op("Mul", self.op("Sub", x, self.constant(zero)), self.constant(scale))

    def weights(self, *shape: int) -> str:
        """Integers as an exporter leaves them: a constant that is rounded and clipped in the graph."""
        values = self.constant(self.rng.uniform(-130, 130, shape))
        return self.op("Clip", self.op("Round", values), self.constant(-128.0), self.constant(127.0))

    def bias(self, count: int) -> str:
        rounded = self.op("Round", self.constant(self.rng.uniform(-3000, 3000, count)))
        return self.op("Clip", rounded, self.constant(-(2.0**31)), self.constant(2.0**31))

    def model(self, output: str) -> Any:
        float32 = onnx.TensorProto.FLOAT
        graph = onnx.helper.make_graph(
            self.nodes,
            "network",
            [onnx.helper.make_tensor_value_info("x", float32, self.shape)],
            [onnx.helper.make_tensor_value_info(output, float32, None)],
            self.constants,
        )
        made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made)


def unified(channels: Array | float) -> Any:
    """A small network of convolutions and a product, whose scales stand behind the sums, as DeepQuant leaves them."""
    net = Network((1, 3, 8, 8))
    q = net.quantised("x", 0.02)
    first = net.op("Conv", q, net.weights(4, 3, 3, 3), net.bias(4), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    q = net.quantised(net.op("Relu", net.real(first, channels)), 0.03, 0, 255)
    second = net.op("Conv", q, net.weights(4, 1, 3, 3), net.bias(4), kernel_shape=[3, 3], group=4, strides=[2, 2])
    q = net.quantised(net.real(second, 2e-4), 0.05)
    flat = net.op("Flatten", q)
    third = net.op("Gemm", flat, net.weights(5, 36), net.bias(5), transB=1)
    return net.model(net.real(net.quantised(net.real(third, 1e-4), 0.04), 0.04))


def split() -> Any:
    """The form before scales are moved: each step is followed by its way back to real numbers."""
    net = Network((2, 3, 8))
    x = net.real(net.quantised("x", 0.02, 0, 255, 128), 0.02, 128)
    scales = np.linspace(0.001, 0.003, 6).reshape(1, 6)
    product = net.op("MatMul", x, net.real(net.weights(8, 6), scales))
    y = net.op("Relu", net.op("Add", product, net.real(net.bias(6), scales.reshape(6) * 0.02)))
    return net.model(net.real(net.quantised(y, 0.05), 0.05))


def linear() -> Any:
    """A product of three axes, whose bias is an addition."""
    net = Network((2, 3, 8))
    total = net.op("MatMul", net.quantised("x", 0.02), net.weights(8, 6))
    y = net.real(net.op("Add", total, net.bias(6)), np.linspace(1e-4, 2e-4, 6))
    return net.model(net.real(net.quantised(y, 0.03), 0.03))


CHANNELS = np.linspace(1e-4, 3e-4, 4).reshape(1, 4, 1, 1)
NETWORKS = {
    "one scale": (
        lambda: unified(2e-4),
        {"uaccel.conv2d": 1, "uaccel.depthwise_conv2d": 1, "uaccel.fully_connected": 1},
    ),
    "a scale for each channel": (lambda: unified(CHANNELS), {"uaccel.conv2d": 1, "uaccel.depthwise_conv2d": 1}),
    "before scales are moved": (split, {"uaccel.fully_connected": 1}),
    "an addition as bias": (linear, {"uaccel.fully_connected": 1}),
}


def calls(path: Path) -> list[str]:
    from uaccel.tvm_api import is_operator_call, main_bindings

    bindings = main_bindings(import_model(path).module)[1]
    return [str(expr.op.name) for _, expr in bindings if is_operator_call(expr)]


@pytest.mark.parametrize("board", ["host", "mps2_an386"])
@pytest.mark.parametrize(("make", "layers"), NETWORKS.values(), ids=NETWORKS)
def test_a_network_becomes_integers_and_equals_its_runtime(
    make: Any, layers: dict[str, int], board: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(make().SerializeToString())
    made = calls(path)
    assert not [name for name in made if "conv" in name and name.startswith("relax.")]
    assert "relax.matmul" not in made
    assert "relax.round" not in made
    assert {name: made.count(name) for name in layers} == layers, made
    call: Call = call_in(capfd)
    done = call("run", path, "--board", board, "--verify", "--json")
    assert done.status == 0, done.err
    verify = done.report["verify"]
    assert (verify["bit_exact"], verify["against"]) == (True, ["exact meaning", "onnxruntime"])
    assert verify["runtime"]["more"] == 0
    assert verify["runtime"]["one_step"] <= 1 + 0.02 * verify["runtime"]["elements"]


def four_bits(net: Network) -> str:
    return net.real(net.quantised("x", 0.2, -8, 7), 0.2)


def several_scales(net: Network) -> str:
    return net.op("Mul", net.quantised("x", np.linspace(0.02, 0.05, 8)), net.constant(0.5))


def half_a_zero_point(net: Network) -> str:
    return net.quantised("x", 0.02, zero=0.5)


def a_sum_with_a_zero_point(net: Network) -> str:
    return net.real(net.op("MatMul", net.quantised("x", 0.02), net.weights(8, 6)), 1e-4, 7)


def a_sum_that_others_read(net: Network) -> str:
    total = net.op("MatMul", net.quantised("x", 0.02), net.weights(8, 6))
    return net.op("Add", net.real(total, 1e-4), net.op("Tanh", total))


def weights_between_integers(net: Network) -> str:
    weights = net.constant(net.rng.uniform(-5, 5, (8, 6)))
    return net.real(net.op("MatMul", net.quantised("x", 0.02), weights), 1e-4)


def scales_of_another_axis(net: Network) -> str:
    total = net.op("MatMul", net.quantised("x", 0.02), net.weights(8, 6))
    return net.real(total, np.linspace(1e-4, 2e-4, 3).reshape(3, 1))


def moved_and_scaled(net: Network) -> str:
    return net.real(net.op("Transpose", net.quantised("x", 0.02, 0, 255, 10), perm=[0, 2, 1]), 0.02, 10)


FORMS = (
    *(four_bits, several_scales, half_a_zero_point, a_sum_with_a_zero_point),
    *(a_sum_that_others_read, weights_between_integers, scales_of_another_axis, moved_and_scaled),
)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_every_form_means_what_it_meant(form: Any, tmp_path: Path) -> None:
    net, path = Network((2, 3, 8)), tmp_path / "m.onnx"
    path.write_bytes(net.model(form(net)).SerializeToString())
    x = np.random.default_rng(1).uniform(-4, 4, net.shape).astype(np.float32)
    (found,) = Executor(import_model(path).module).run([x])
    (wanted,) = session_of(path).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * float(np.abs(wanted).max()))


def test_a_file_with_quantisation_of_onnx_is_left_alone() -> None:
    net = Network((2, 3, 8))
    y = net.quantised("x", 0.02)
    net.nodes.append(onnx.helper.make_node("QuantizeLinear", [y, net.constant(0.5)], ["q"]))
    net.nodes.append(onnx.helper.make_node("DequantizeLinear", ["q", net.constant(0.5)], ["y"]))
    model = net.model("y")
    before = model.SerializeToString()
    recognised(onnx, model)
    assert model.SerializeToString() == before
