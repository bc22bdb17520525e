"""ONNX models of many independent nodes, so that one compilation tries them all, and ONNX Runtime as their oracle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from uaccel.frontend.onnx.graph import LEARNING
from uaccel.runner import onnx_runtime

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Given:
    """An input that comes at run time: random numbers of this shape, real ones between the bounds."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float = -3.0
    high: float = 3.0

    def values(self, rng: np.random.Generator) -> Array:
        kind = np.dtype(self.dtype)
        if kind.kind == "f":
            return rng.uniform(self.low, self.high, self.shape).astype(kind)
        if kind.kind == "b":
            return rng.integers(0, 2, self.shape).astype(kind)
        low, high = (self.low, self.high) if (self.low, self.high) != (-3.0, 3.0) else _limits(kind)
        return rng.integers(int(low), int(high), self.shape, endpoint=True).astype(kind)


def _limits(kind: np.dtype[Any]) -> tuple[int, int]:
    info = np.iinfo(kind)
    return max(int(info.min), -100000), min(int(info.max), 100000)


@dataclass(frozen=True, eq=False)
class Row:
    """One node; ``inputs`` are given at run time, constant arrays, or None where they are left out."""

    op: str
    inputs: Sequence[Given | Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""


def row(op: str, *inputs: Given | Array | None, outputs: int = 1, domain: str = "", **attributes: Any) -> Row:
    return Row(op, inputs, attributes, outputs, domain)


def model_of(rows: Mapping[str, Row], opset: int, types: Mapping[str, Any] | None = None) -> Any:
    """The model; tensors are called by their row, as ``name/in0`` and ``name/out0``.

    ``types`` are those of outputs, where they are known; ONNX Runtime is asked where they are not given."""
    onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")
    nodes, inputs, constants, outputs = [], [], [], []
    for name, entry in rows.items():
        names = []
        for number, given in enumerate(entry.inputs):
            names.append(f"{name}/in{number}" if given is not None else "")
            if isinstance(given, Given):
                kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(given.dtype))
                inputs.append(onnx.helper.make_tensor_value_info(names[-1], kind, given.shape))
            elif given is not None:
                constants.append(onnx.numpy_helper.from_array(given, names[-1]))
        made = [f"{name}/out{number}" for number in range(entry.outputs)]
        nodes.append(onnx.helper.make_node(entry.op, names, made, name=name, domain=entry.domain, **entry.attributes))
        outputs += [_output(name, (types or {}).get(name)) for name in made]
    graph = onnx.helper.make_graph(nodes, "rows", inputs, outputs, constants)
    domains = {"": opset, "com.microsoft": 1}
    domains |= {LEARNING: 3} if any(entry.domain == LEARNING for entry in rows.values()) else {}
    opsets = [onnx.helper.make_opsetid(domain, version) for domain, version in domains.items()]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return with_types(model) if types is None else model


def _output(name: str, dtype: Any) -> Any:
    import onnx

    if dtype is None:
        return onnx.helper.make_value_info(name, onnx.TypeProto())
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)


def with_types(model: Any) -> Any:
    """Outputs need a type in the file, which ONNX Runtime works out for operators of its own too."""
    import onnx

    session = session_of(model)
    for value, typed in zip(model.graph.output, session.get_outputs(), strict=True):
        name = typed.type.removeprefix("tensor(").removesuffix(")")
        kind = getattr(onnx.TensorProto, name.upper())
        value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, kind, None))
    return model


def session_of(model: Any | Path) -> Any:
    """ONNX Runtime without any of its optimisations, which change results."""
    pytest.importorskip("onnxruntime", reason="the reference, onnxruntime, is not installed")
    return onnx_runtime.session_of(model)


def feeds_of(rows: Mapping[str, Row], seed: int = 0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {
        f"{name}/in{number}": given.values(rng)
        for name, entry in rows.items()
        for number, given in enumerate(entry.inputs)
        if isinstance(given, Given)
    }


def random_feeds(session: Any, seed: int = 0) -> dict[str, Array]:
    """For a model of float inputs."""
    rng = np.random.default_rng(seed)
    return {value.name: rng.standard_normal(value.shape).astype(np.float32) for value in session.get_inputs()}


def compare(got: Array, wanted: Array, what: str, *, steps: int = 0, relative: float = 1e-5) -> int:
    """Float within tolerance, all else equal or, in quantised tensors, ``steps`` apart; gives how many are apart."""
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), (
        f"{what}: {got.dtype} {got.shape}, not {wanted.shape}"
    )
    if wanted.dtype.kind == "f":
        scale = float(np.nanmax(np.abs(wanted), initial=0.0))
        np.testing.assert_allclose(got, wanted, rtol=relative, atol=relative * max(scale, 1e-3), err_msg=what)
        return 0
    apart = np.abs(got.astype(np.int64) - wanted.astype(np.int64))
    assert int(apart.max(initial=0)) <= steps, f"{what}: {int(apart.max())} apart, {np.count_nonzero(apart)} elements"
    return int(np.count_nonzero(apart))


def onnx_with_weights_beside(folder: Path, location: str, name: str = "x") -> Path:
    """The sum of an input of this name and weights that lie in a file of their own."""
    onnx = pytest.importorskip("onnx")
    path, node = folder / "model.onnx", onnx.helper.make_node("Add", [name, "w"], ["y"])
    weights = [onnx.numpy_helper.from_array(np.arange(3, dtype=np.float32), "w")]
    shaped = [onnx.helper.make_tensor_value_info(one, onnx.TensorProto.FLOAT, [1, 3]) for one in (name, "y")]
    graph = onnx.helper.make_graph([node], "small", shaped[:1], shaped[1:], weights)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (folder / location).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, path, save_as_external_data=True, location=location, size_threshold=0)
    return path
