"""The official tests of ONNX operators that fall in scope, and how each one ends here.

A case is a model of one node with inputs and expected outputs, which come with the onnx package. What a case passes at
run time although firmware must know it (shapes, axes, scales) is made constant where the case is refused otherwise.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from support.device.hostlib import HostModel
from support.models.onnx_rows import Array
from uaccel.errors import ModelError
from uaccel.frontend import import_model
from uaccel.frontend.onnx.graph import DTYPES
from uaccel.model import ImportedModel
from uaccel.pipeline import compile_model
from uaccel.tvm_api.executor import Executor

Status = Literal["compiled", "executed", "refused", "wrong"]


@dataclass(frozen=True)
class Case:
    name: str
    op: str
    model: Any
    inputs: list[Array]
    outputs: list[Array]
    relative: float
    absolute: float


@dataclass(frozen=True)
class Verdict:
    """``compiled``: right as TVM executes it, and becomes C; ``executed``: right, but there is no C for it."""

    status: Status
    reason: str = ""


def cases() -> Iterator[Case]:
    """Standard operators on tensors that can be compiled; without the decomposed forms of the same operators."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        loaded = load_model_tests(kind="node")
    for test in loaded:
        if test.model is None or test.name.endswith("_expanded") or "_expanded_ver" in test.name:
            continue
        inputs, outputs = map(_compilable, test.data_sets[0])
        standard = any(entry.domain == "" for entry in test.model.opset_import)
        if inputs is not None and outputs is not None and standard and not test.model.graph.node[-1].domain:
            op = test.model.graph.node[-1].op_type
            yield Case(test.name, op, test.model, inputs, outputs, test.rtol, max(test.atol, 1e-6))


def _compilable(values: Sequence[Any]) -> list[Array] | None:
    """The tensors, if all of them can be compiled."""
    found = [np.asarray(value) for value in values if isinstance(value, (np.ndarray, np.generic))]
    sound = len(found) == len(values) and all(str(each.dtype) in DTYPES and each.size for each in found)
    return found if sound else None


def _baked(case: Case) -> Case:
    """All inputs but the first as constants."""
    from onnx import numpy_helper

    model = type(case.model)()
    model.CopyFrom(case.model)
    for value, given in list(zip(model.graph.input, case.inputs, strict=True))[1:]:
        model.graph.initializer.append(numpy_helper.from_array(given, value.name))
    del model.graph.input[1:]
    model.ir_version = max(model.ir_version, 4)  # the first one whose initialisers are no inputs
    return dataclasses.replace(case, model=model, inputs=case.inputs[:1])


def judge(case: Case, folder: Path, *, run_c: bool = False) -> Verdict:
    """How the case ends; ``run_c``: its C is compiled and run, too."""
    path = folder / f"{case.name}.onnx"
    try:
        model = _imported(case, path)
    except ModelError:
        case = _baked(case)
        try:
            model = _imported(case, path)
        except ModelError as error:
            text = str(error).replace(str(path), "the model")
            return Verdict("refused", text.partition("unsupported: ")[2] or text)
    try:
        complaint = _compare(Executor(model.module).run(_widened(case.inputs)), case)
    except Exception as error:  # whatever TVM raises
        return Verdict("wrong", f"TVM: {str(error).strip().splitlines()[-1][:200]}")
    return Verdict("wrong", complaint) if complaint else _compile(case, path, run_c)


def _imported(case: Case, path: Path) -> ImportedModel:
    """With the shapes of the data, where the model leaves them open."""
    path.write_bytes(case.model.SerializeToString())
    shapes = {}
    for value, given in zip(case.model.graph.input, case.inputs, strict=True):
        dims = value.type.tensor_type.shape.dim
        if any(dim.WhichOneof("value") != "dim_value" for dim in dims) or len(dims) != given.ndim:
            shapes[value.name] = given.shape
    return import_model(path, shapes)


def _compile(case: Case, path: Path, run_c: bool) -> Verdict:
    try:
        compiled = compile_model(path, board="host")
    except ModelError as error:
        reason = str(error).replace(str(path), "the model")
        return Verdict("executed", reason if "--input-shape" not in reason else "its shape is free")
    if run_c and (complaint := _compare(HostModel(compiled)(*_widened(case.inputs)), case)):
        return Verdict("wrong", f"in C: {complaint}")
    return Verdict("compiled")


def _widened(values: list[Array]) -> list[Array]:
    """What is half precision in a file is float32 here."""
    return [value.astype(np.float32) if value.dtype == np.float16 else value for value in values]


def _compare(results: list[Array], case: Case) -> str:
    """What is wrong, or nothing."""
    outputs = zip(results, _widened(case.outputs), case.outputs, strict=False)
    for number, (got, wanted, given) in enumerate(outputs):
        if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
            return f"output {number} is {got.dtype} {got.shape}, not {wanted.dtype} {wanted.shape}"
        half = given.dtype == np.float16
        relative, absolute = (1e-2, 2e-3) if half else (case.relative, case.absolute)
        same = (
            np.allclose(got, wanted, relative, absolute, equal_nan=True)
            if wanted.dtype.kind == "f"
            else np.array_equal(got, wanted)
        )
        if not same:
            return f"output {number} has other values"
    return ""
