"""Operators that round the real result once, half to even, held against exact fractions and against ONNX Runtime.

Layers of many cases make one module, so that a test compiles once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from support.device.hostlib import Array, HostModel
from support.models.relax_modules import compiled_module
from support.oracle.exactness import assert_same
from uaccel.model import Quantisation
from uaccel.pipeline import Compiled
from uaccel.tvm_api import ModuleBuilder, relax
from uaccel.tvm_api.executor import Executor

NEAR = 27  # bits: what lies nearer to the middle than the largest result * 2**-27 may be rounded to either side
NOISE = 18  # bits: what float32 leaves of the largest result, with some operations on the way


@dataclass(frozen=True)
class Quantised:
    """A tensor of a QDQ model."""

    shape: tuple[int, ...]
    scale: float
    zero_point: int = 0
    dtype: str = "int8"

    @property
    def quantisation(self) -> Quantisation:
        return Quantisation((self.scale,), (self.zero_point,))

    @property
    def fraction(self) -> Fraction:
        return Fraction(float(np.float32(self.scale)))

    def centred(self, stored: Array) -> Array:
        """Stored values without the zero point, as Python's integers."""
        return stored.astype(object) - self.zero_point

    def random(self, seed: int) -> Array:
        """Extremes now and then."""
        random, limits = np.random.default_rng(seed), np.iinfo(self.dtype)
        values = random.integers(limits.min, limits.max, self.shape, endpoint=True)
        extreme = random.choice([limits.min, limits.max, self.zero_point], self.shape)
        return np.where(random.random(self.shape) < 0.1, extreme, values).astype(self.dtype)


@dataclass(frozen=True)
class Case:
    """One layer: ``build`` applies it to variables, ``real`` gives the real result in steps, as fractions.

    ``onnx`` is the ONNX operator that it stands for, with its attributes; more arrays are further inputs of that. Its
    images have their channels first where ``channels_first`` says so.
    """

    inputs: tuple[Quantised, ...]
    output: Quantised
    build: Callable[..., Any]
    real: Callable[..., Array]
    onnx: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    arrays: tuple[Array, ...] = ()
    clamp: tuple[int, int] | None = None
    channels_first: bool = False


def module_of(cases: Sequence[Case]) -> Any:
    builder = ModuleBuilder()
    given = [
        [relax.Var(f"x{i}_{j}", relax.TensorType(x.shape, x.dtype)) for j, x in enumerate(case.inputs)]
        for i, case in enumerate(cases)
    ]
    with builder.function([variable for variables in given for variable in variables]) as block:
        pairs = zip(cases, given, strict=True)
        results = [block.emit(case.build(*variables), f"layer{i}") for i, (case, variables) in enumerate(pairs)]
        block.finish(relax.Tuple(results))
    return builder.module


def samples_of(cases: Sequence[Case], seed: int, runs: int) -> list[list[list[Array]]]:
    """For every run and case the inputs."""
    return [
        [[x.random(seed + 1000 * run + 10 * i + j) for j, x in enumerate(case.inputs)] for i, case in enumerate(cases)]
        for run in range(runs)
    ]


def check(
    cases: Mapping[str, Case], *, seed: int = 0, runs: int = 3, meaning: bool = True, onnx: bool = True
) -> Compiled:
    """Generated C and exact meaning are the same bytes, and what they ought to be."""
    listed = list(cases.values())
    found = compiled_module(module_of(listed))
    host, executor = HostModel(found), Executor(found.model.module) if meaning else None
    for run, samples in enumerate(samples_of(listed, seed, runs)):
        flat = [value for values in samples for value in values]
        outputs = host(*flat)
        if executor is not None:
            for name, got, meant in zip(cases, outputs, executor.run(flat), strict=True):
                assert_same(got, meant, f"{name}, run {run}: the generated C")
        for (name, case), values, got in zip(cases.items(), samples, outputs, strict=True):
            check_ideal(case, values, got, f"{name}, run {run}")
            if onnx:
                check_onnx(case, values, got, f"{name}, run {run}")
    return found


def check_ideal(case: Case, values: Sequence[Array], got: Array, what: str) -> None:
    """Exactly the nearest integer, of two the even one; either where the real result is all but in the middle."""
    centred = [x.centred(value) for x, value in zip(case.inputs, values, strict=True)]
    real = case.real(*centred)
    low, high = case.clamp or (np.iinfo(case.output.dtype).min, np.iinfo(case.output.dtype).max)
    nearest = Fraction(np.iinfo(case.output.dtype).max, 1 << NEAR)
    assert got.shape == real.shape, f"{what}: shape {got.shape}, wanted {real.shape}"
    assert got.dtype == case.output.dtype
    for index, value in np.ndenumerate(real):
        rounded, stored = round(value), int(got[index])
        wanted = min(max(rounded + case.output.zero_point, low), high)
        middle = abs(abs(value - rounded) - Fraction(1, 2))
        near = abs(stored - wanted) <= 1 and 0 < middle < nearest
        assert stored == wanted or near, f"{what} at {index}: {stored}, wanted {wanted} for {float(value)}"


def check_onnx(case: Case, values: Sequence[Array], got: Array, what: str) -> None:
    """What ONNX Runtime gives, or a step away where the noise of its float32 reaches the middle between two steps."""
    expected = run_onnx(case, values)
    if case.clamp:
        expected = np.clip(expected, *case.clamp)
    difference = got.astype(np.int64) - expected.astype(np.int64)
    centred = [x.centred(value) for x, value in zip(case.inputs, values, strict=True)]
    real = case.real(*centred)
    noise = Fraction(np.iinfo(case.output.dtype).max, 1 << NOISE)
    for index in map(tuple, np.argwhere(np.atleast_1d(difference))):
        value = np.atleast_1d(real)[index]
        one, other = np.atleast_1d(got)[index], np.atleast_1d(expected)[index]
        near = abs(abs(value - round(value)) - Fraction(1, 2)) <= noise
        seldom = near and abs(int(one) - int(other)) == 1
        assert seldom, f"{what} at {index}: {one}, ONNX Runtime gives {other} for {float(value)}"


def run_onnx(case: Case, values: Sequence[Array]) -> Array:
    """DequantizeLinear, the operator, QuantizeLinear; nothing fused."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(qdq_model(case), options, providers=["CPUExecutionProvider"])
    moved = [np.moveaxis(value, -1, 1) if case.channels_first else value for value in values]
    (result,) = session.run(None, {f"x{i}": np.ascontiguousarray(value) for i, value in enumerate(moved)})
    return np.moveaxis(result, 1, -1) if case.channels_first else np.asarray(result)


def qdq_model(case: Case) -> bytes:
    from onnx import helper, numpy_helper

    initialisers, nodes = [], []

    def constant(name: str, value: Array) -> str:
        initialisers.append(numpy_helper.from_array(value, name))
        return name

    def parameters(name: str, tensor: Quantised) -> list[str]:
        scale = constant(f"{name}_scale", np.array(tensor.scale, np.float32))
        return [scale, constant(f"{name}_zero_point", np.array(tensor.zero_point, tensor.dtype))]

    names = []
    for i, tensor in enumerate(case.inputs):
        nodes.append(helper.make_node("DequantizeLinear", [f"x{i}", *parameters(f"x{i}", tensor)], [f"f{i}"]))
        names.append(f"f{i}")
    names += [constant(f"array{i}", array) for i, array in enumerate(case.arrays)]
    nodes.append(helper.make_node(case.onnx, names, ["g"], **case.attributes))
    nodes.append(helper.make_node("QuantizeLinear", ["g", *parameters("y", case.output)], ["y"]))

    def info(name: str, tensor: Quantised) -> Any:
        shape = (*tensor.shape[:1], tensor.shape[-1], *tensor.shape[1:-1]) if case.channels_first else tensor.shape
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(tensor.dtype)), shape)

    inputs = [info(f"x{i}", tensor) for i, tensor in enumerate(case.inputs)]
    graph = helper.make_graph(nodes, "case", inputs, [info("y", case.output)], initialisers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return bytes(model.SerializeToString())
