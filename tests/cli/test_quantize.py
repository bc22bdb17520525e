"""`uaccel quantize`: what it writes, what it says, and what it refuses. The oracle is ONNX Runtime."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from support.run.command import Call, process
from uaccel.model import write_npz

onnx: Any = pytest.importorskip("onnx")
onnxruntime: Any = pytest.importorskip("onnxruntime")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT
Array = NDArray[Any]
SAMPLES = 24
ADVICE = "scales are learnt from the values, so give numbers only"


def model_of(nodes: list[Any], weights: dict[str, Array], shape: list[Any], classes: list[Any], opset: int = 17) -> Any:
    constants = [onnx.numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    ends = [helper.make_tensor_value_info(*entry) for entry in (("x", FLOAT, shape), ("y", FLOAT, classes))]
    graph = helper.make_graph(nodes, "small", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def small(batch: Any = 1, opset: int = 17) -> Any:
    """A convolution, a pool over the image, and a dense layer to five classes."""
    random = np.random.default_rng(1)
    weights = {"w": random.normal(size=(6, 3, 3, 3)), "b": random.normal(size=6), "d": random.normal(size=(6, 5))}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "d"], ["y"]),
    ]
    return model_of(nodes, weights, [batch, 3, 8, 8], [batch, 5], opset)


def samples(count: int = SAMPLES) -> Array:
    return np.random.default_rng(2).normal(size=(count, 3, 8, 8)).astype(np.float32)


def results(model: Path, values: Array) -> Array:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {"x": value[None]})[0] for value in values])


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(small(), tmp_path / "small.onnx")
    return tmp_path / "small.onnx"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    np.savez(tmp_path / "data.npz", x=samples())
    return tmp_path / "data.npz"


def tensors_of(model: Any, wanted: dict[str, str], folder: Path) -> dict[str, Array]:
    """What ONNX Runtime makes of these tensors of a model, by another name each."""
    there = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in there)
    onnx.save(model, folder / "shown.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(folder / "shown.onnx"), options, providers=["CPUExecutionProvider"])
    rows = [session.run(list(wanted), {"x": value[None]}) for value in samples()]
    return {alias: np.stack([row[i] for row in rows]).astype(np.float64) for i, alias in enumerate(wanted.values())}


def operators(path: Path) -> set[str]:
    return {node.op_type for node in onnx.load(path).graph.node}


def test_what_it_writes_and_says(model: Path, data: Path, call: Call) -> None:
    done = call("quantize", model, "--calibration", data, "--json")
    assert done.status == 0
    target = model.with_name("small_int8.onnx")
    report = done.report
    exact, got = results(model, samples()), results(target, samples())
    noise = 10 * np.log10(np.sum(exact.astype(np.float64) ** 2) / np.sum((got - exact).astype(np.float64) ** 2))
    assert noise > 20
    output = report.pop("outputs").pop("y")
    assert output["snr_db"] == pytest.approx(noise, rel=1e-5)
    assert output["max_difference"] == pytest.approx(np.abs(got - exact).max(), rel=1e-5)
    assert output["agreement"] == np.mean(got.argmax(1) == exact.argmax(1))
    assert [(row["name"], row["op"], row["tensor"]) for row in report.pop("layers")] == LAYERS
    assert report.pop("sha256") == hashlib.sha256(target.read_bytes()).hexdigest()
    weights = report.pop("weight_bytes")
    assert weights["before"] == 4 * (6 * 27 + 6 + 30)
    assert weights["after"] < 0.6 * weights["before"]
    assert report == {
        "goal": None,
        "kept": [],
        "model": str(model),
        "output": str(target),
        "format": "qdq",
        "activations": "int8",
        "weights": "int8",
        "per_channel": True,
        "method": "minmax",
        "samples": SAMPLES,
        "file_bytes": {"before": model.stat().st_size, "after": target.stat().st_size},
        "top1": None,
    }
    assert {"QuantizeLinear", "DequantizeLinear", "Conv"} <= operators(target)
    scales = {tensor.name: tensor.dims for tensor in onnx.load(target).graph.initializer if "w_scale" in tensor.name}
    assert [list(dims) for dims in scales.values()] == [[6]]


def test_weights_in_a_file_beside_the_model_count(data: Path, tmp_path: Path, call: Call) -> None:
    path = tmp_path / "small.onnx"
    where = {"save_as_external_data": True, "location": "weights.bin", "size_threshold": 0}
    onnx.save(small(), path, **where)
    report = call("quantize", path, "--calibration", data, "--json").report
    assert report["file_bytes"]["before"] == path.stat().st_size + (tmp_path / "weights.bin").stat().st_size
    assert report["weight_bytes"]["before"] == 4 * (6 * 27 + 6 + 30)


LAYERS = [("c", "Conv", "r"), ("g", "GlobalAveragePool", "g"), ("f", "Flatten", "f"), ("y", "MatMul", "y")]
"""The clamp of the convolution's result is its range."""
SHOWN = {
    "qdq": {f"{name}_QuantizeLinear_Output": name for name in "rgf"} | {"y_QuantizeLinear_Output": "y"},
    "qoperator": {"c_quantized": "r", "g_quantized": "g", "f_quantized": "f", "y_quantized": "y"},
}
SCALES = {"qdq": {"r": "r", "g": "g", "f": "g", "y": "y"}, "qoperator": {"r": "c", "g": "g", "f": "g", "y": "y"}}


@pytest.mark.parametrize("kind", SHOWN)
def test_layers_are_held_to_the_float_model(kind: str, model: Path, data: Path, tmp_path: Path, call: Call) -> None:
    """Against integers of the file, made numbers here."""
    done = call("quantize", model, "-c", data, "--format", kind, "--json")
    rows = {row["tensor"]: row for row in done.report["layers"]}
    assert [(row["op"], name) for name, row in rows.items()] == [(op, name) for _, op, name in LAYERS]
    quantised = onnx.load(done.report["output"])
    numbers = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in quantised.graph.initializer}
    exact = tensors_of(small(), {name: name for name in "rgfy"}, tmp_path)
    got = tensors_of(quantised, SHOWN[kind], tmp_path)
    for name, row in rows.items():
        scale, zero = (numbers[f"{SCALES[kind][name]}_{what}"].astype(np.float64) for what in ("scale", "zero_point"))
        off = (got[name] - zero) * scale - exact[name]
        assert row["snr_db"] == pytest.approx(10 * np.log10(np.sum(exact[name] ** 2) / np.sum(off**2)), rel=1e-4)
        assert row["max_difference"] == pytest.approx(np.abs(off).max(), rel=1e-3)


def test_what_a_person_sees(model: Path, data: Path, tmp_path: Path) -> None:
    """In a process of its own: nothing but ours, on either stream, whatever the quantiser prints."""
    np.savez(tmp_path / "labels.npz", results(model, samples()).argmax(1))
    wishes = ("-c", data, "-o", tmp_path / "out.onnx", "--labels", tmp_path / "labels.npz", "--method", "percentile")
    done = process("quantize", model, *wishes)
    assert done.status == 0, done.err
    assert done.err.splitlines() == [
        f"uaccel: read {model}",
        "uaccel: prepare the float model",
        "uaccel: calibrate with 24 samples",
        "uaccel: quantise",
        "uaccel: compare with the float model",
        f"uaccel: write {tmp_path / 'out.onnx'}",
    ]
    size, accuracy, top1, layers, place = done.out.splitlines()
    before, after = model.stat().st_size, (tmp_path / "out.onnx").stat().st_size
    assert size.startswith(f"  Size      {before:,} -> {after:,} bytes, of which weights 792 -> ")
    assert accuracy.startswith("  Accuracy  y: the same class as the float model in ")
    assert " of 24 samples, signal to noise " in accuracy
    assert top1.startswith("  Top-1     100.0 % -> ")
    assert top1.endswith(" % of 24 labels")
    assert re.fullmatch(r"  Layers    least signal to noise: (\w \(\w+\) \d+\.\d dB(, )?){3}", layers)
    decibels = [float(word) for word in re.findall(r"(\S+) dB", layers)]
    assert decibels == sorted(decibels)
    assert place == f"  Model     {tmp_path / 'out.onnx'}"


@pytest.mark.parametrize(
    ("wishes", "wanted", "kind"),
    [
        (("--format", "qoperator"), {"QLinearConv", "QLinearMatMul"}, onnx.TensorProto.INT8),
        (("--activations", "uint8", "--per-tensor"), {"QuantizeLinear"}, onnx.TensorProto.UINT8),
    ],
)
def test_wishes(wishes: tuple[str, ...], wanted: set[str], kind: int, model: Path, data: Path, call: Call) -> None:
    done = call("quantize", model, "-c", data, *wishes, "--json")
    assert done.status == 0
    written = Path(done.report["output"])
    assert wanted <= operators(written)
    tensors = {tensor.name: tensor for tensor in onnx.load(written).graph.initializer}
    assert tensors["x_zero_point"].data_type == kind
    assert list(tensors["w_scale"].dims) == ([] if "--per-tensor" in wishes else [6])


@pytest.mark.parametrize("shape", [(SAMPLES, 3, 8, 8), (SAMPLES, 1, 3, 8, 8), (1, 3, 8, 8)])
@pytest.mark.parametrize("batch", [1, "N"])
def test_samples_lie_along_the_first_axis(batch: Any, shape: tuple[int, ...], tmp_path: Path, call: Call) -> None:
    onnx.save(small(batch), tmp_path / "small.onnx")
    np.savez(tmp_path / "data.npz", x=samples(shape[0]).reshape(shape))
    done = call("quantize", tmp_path / "small.onnx", "-c", tmp_path / "data.npz", "--json")
    assert done.status == 0
    assert done.report["samples"] == shape[0]


def test_labels_beside_the_samples(model: Path, tmp_path: Path, call: Call) -> None:
    labels = results(model, samples()).argmax(1)
    labels[:6] = (labels[:6] + 1) % 5
    np.savez(tmp_path / "data.npz", x=samples(), labels=labels)
    done = call("quantize", model, "-c", tmp_path / "data.npz", "--json")
    after = results(Path(done.report["output"]), samples()).argmax(1)
    assert done.report["top1"] == {"before": 18 / 24, "after": np.mean(after == labels)}


def test_an_older_opset_is_renewed(tmp_path: Path, data: Path, call: Call) -> None:
    onnx.save(small(opset=11), tmp_path / "old.onnx")
    done = call("quantize", tmp_path / "old.onnx", "-c", data, "--json")
    assert done.status == 0
    assert {"QuantizeLinear", "Conv"} <= operators(tmp_path / "old_int8.onnx")


def complaint(call: Call, model: Path, data: Path, *more: Any) -> str:
    """It, with nothing written."""
    folder = model.parent
    before = sorted(folder.iterdir())
    done = call("quantize", model, "-c", data, *more, "--json")
    assert done.status == 1
    assert done.report["error"]["message"] == done.complaint
    assert sorted(folder.iterdir()) == before
    return done.complaint


BAD = np.where(np.arange(3 * 8 * 8 * 2).reshape(2, 3, 8, 8) < 5, np.nan, 1).astype(np.float32)
DATA: dict[str, tuple[dict[str, Array], str]] = {
    "name": ({"image": samples()}, 'holds "image"; the model\'s inputs are "x": name the arrays so'),
    "shape": (
        {"x": samples(4).reshape(-1, 8, 8, 3)},
        ': input "x" has shape [4, 8, 8, 3], the model wants [1, 3, 8, 8] '
        "(or several samples of it along a first axis)",
    ),
    "type": ({"x": samples().astype(np.float64)}, ': input "x" is float64, the model wants float32'),
    "none": ({"x": samples(0)}, ': input "x" has shape [0, 3, 8, 8]: no samples; give one or more'),
    "nan": ({"x": BAD}, f': input "x": 5 of 384 values are NaN or infinite; {ADVICE}'),
    "labels": (
        {"x": samples(), "labels": np.zeros(3, np.int64)},
        ": labels are int64 [3], wanted integers, one for each of 24 samples",
    ),
}


@pytest.mark.parametrize("kind", DATA)
def test_data_that_does_not_fit(kind: str, model: Path, tmp_path: Path, call: Call) -> None:
    arrays, text = DATA[kind]
    path = tmp_path / "data.npz"
    with path.open("wb") as file:
        write_npz(file, arrays)
    assert complaint(call, model, path).removeprefix(str(path)).lstrip() == text.lstrip()


def test_labels_that_are_no_classes(model: Path, tmp_path: Path, call: Call) -> None:
    np.savez(tmp_path / "data.npz", x=samples(), labels=np.arange(SAMPLES))
    assert complaint(call, model, tmp_path / "data.npz") == (
        'labels go from 0 to 23, and output "y" has 5 classes, 0 to 4'
    )


def test_a_quantised_model(model: Path, data: Path, call: Call) -> None:
    assert call("quantize", model, "-c", data).status == 0
    quantised = model.with_name("small_int8.onnx")
    assert complaint(call, quantised, data) == (
        f"{quantised} is quantised already (DequantizeLinear, QuantizeLinear); give the float model"
    )


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("m.tflite", "have the TFLite converter quantise it: converter.optimizations and representative_dataset"),
        ("m.pt", "export it: torch.export.save(torch.export.export(module, inputs), 'model.pt2')"),
        ("m.h5", "export the model to ONNX"),
    ],
)
def test_other_formats(name: str, advice: str, data: Path, tmp_path: Path, call: Call) -> None:
    path = tmp_path / name
    path.write_bytes(b"anything")
    assert complaint(call, path, data) == f"{path}: only .onnx and .pt2 models are quantised here; {advice}"


def test_what_is_no_model(data: Path, tmp_path: Path, call: Call) -> None:
    path = tmp_path / "bad.onnx"
    assert complaint(call, path, data) == f"no model file {path}; check the path"
    path.write_bytes(b"not a protobuf at all")
    assert complaint(call, path, data).startswith(f"{path} is not a readable ONNX model: ")
    assert complaint(call, path, data).endswith("; give a .onnx file as exporters write it")


def test_nothing_to_quantise(data: Path, tmp_path: Path, call: Call) -> None:
    path = tmp_path / "cosine.onnx"
    onnx.save(model_of([helper.make_node("Cos", ["x"], ["y"])], {}, [1, 3, 8, 8], [1, 3, 8, 8]), path)
    assert complaint(call, path, data) == f"nothing in {path} can be quantised: its operators are Cos"


def test_a_failure_leaves_the_old_file(model: Path, data: Path, call: Call) -> None:
    target = model.with_name("small_int8.onnx")
    target.write_bytes(b"old")
    np.savez(data, x=BAD)
    complaint(call, model, data)
    assert target.read_bytes() == b"old"
    assert "is the float model itself; choose another name" in complaint(call, model, data, "-o", model)


def test_onnx_runtime_is_not_installed(model: Path, data: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    text = complaint(call, model, data)
    assert text.startswith("quantising takes onnx and onnxruntime, and importing onnx fails (")
    assert text.endswith("); install them: pip install 'uaccel[quantize]'")
