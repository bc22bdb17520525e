"""An ONNX file becomes a checked protobuf: everything that is wrong with the file itself is said here."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from uaccel.errors import ModelError
from uaccel.frontend.budget import Budget, read_file
from uaccel.frontend.checks import first_line
from uaccel.frontend.onnx.external import read_external
from uaccel.frontend.onnx.graph import MICROSOFT, STANDARD
from uaccel.frontend.onnx.half import widened
from uaccel.frontend.onnx.package import onnx_package, refusals
from uaccel.frontend.onnx.schema import AGAIN
from uaccel.frontend.onnx.structure import check_structure

OLDEST_OPSET = 13
LARGEST_CHECKED = 1 << 12
"""Bytes of an initialiser that ONNX's checks get to see; none of them needs the weights."""


@dataclass(frozen=True)
class LoadedFile:
    """``data`` is one file with everything in it, whether the model came as one or with its weights beside it."""

    model: Any
    data: bytes
    digest: str
    opset: int


def load(path: Path, budget: Budget) -> LoadedFile:
    """The model, with external data read in and functions of the file's own inlined."""
    onnx = onnx_package()
    data = read_file(path)
    model = _parsed(onnx, data, path)
    opset = _checked_versions(onnx, model, path)
    check_structure(onnx, model, budget, path)
    if read_external(onnx, model, path):
        data = _as_one_file(model, path)
    if model.functions:
        model = _inlined(model, path)
        check_structure(onnx, model, Budget(path), path)
    _sort(model.graph)
    _check_graph(model.graph, path)
    _run_checker(onnx, model, path)
    widened(onnx, model)
    return LoadedFile(model, data, hashlib.sha256(data).hexdigest(), opset)


def _as_one_file(model: Any, path: Path) -> bytes:
    try:
        return bytes(model.SerializeToString(deterministic=True))
    except Exception as error:  # protobuf's limit of 2 GiB
        raise ModelError(f"{path} and its weights are too large: {first_line(error)}") from error


def _inlined(model: Any, path: Path) -> Any:
    from onnx.inliner import inline_local_functions

    try:
        return inline_local_functions(model)
    except refusals() as error:
        raise ModelError(f"{path}: its functions cannot be looked into: {first_line(error)}; {AGAIN}") from error


def _parsed(onnx: Any, data: bytes, path: Path) -> Any:
    from google.protobuf.message import DecodeError

    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except (DecodeError, RuntimeError, ValueError) as error:
        raise ModelError(
            f"{path} is no ONNX file, or is damaged ({len(data)} bytes): {first_line(error)}; copy or export it again"
        ) from error
    if not model.HasField("graph"):
        raise ModelError(f"{path} holds no graph ({len(data)} bytes), so it is no ONNX model; export it again")
    if not model.graph.node:
        raise ModelError(f"{path} is empty: its graph has no nodes; nothing to compile")
    if not model.graph.output:
        raise ModelError(f"{path} has no outputs; export the model again")
    return model


def _checked_versions(onnx: Any, model: Any, path: Path) -> int:
    """The version of the standard operators."""
    newest_ir, newest = onnx.IR_VERSION, onnx.defs.onnx_opset_version()
    upgrade = f"onnx {onnx.__version__} knows up to {{}}: pip install -U onnx, or export the model for an older one"
    if model.ir_version > newest_ir:
        raise ModelError(f"{path} has IR version {model.ir_version}; {upgrade.format(newest_ir)}")
    versions = {entry.version for entry in model.opset_import if entry.domain in STANDARD}
    if len(versions) > 1:
        raise ModelError(f"{path} says of several opsets of ai.onnx that its operators are of it; {AGAIN}")
    opset = max(versions, default=0)
    if opset < 1:
        raise ModelError(f"{path} does not say which opset of ai.onnx its operators are of; export the model again")
    if opset > newest:
        raise ModelError(f"{path} uses opset {opset}; {upgrade.format(newest)}")
    if opset < OLDEST_OPSET:
        raise ModelError(
            f"{path} uses opset {opset}, wanted {OLDEST_OPSET} or later; convert it: "
            f"onnx.save(onnx.version_converter.convert_version(onnx.load('{path.name}'), 17), 'new.onnx')"
        )
    return opset


def _sort(graph: Any) -> None:
    """Each node behind those whose results it reads: converters to float16 append casts at the end. Where nodes read
    from each other in a ring all stays as it is."""
    made = {name: index for index, node in enumerate(graph.node) for name in node.output if name}
    wanted = {
        index: sorted({made[name] for name in node.input if name in made}) for index, node in enumerate(graph.node)
    }
    if all(before < index for index, each in wanted.items() for before in each):
        return
    try:
        order = list(TopologicalSorter(wanted).static_order())
    except CycleError:
        return
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend(nodes[index] for index in order)


def _check_graph(graph: Any, path: Path) -> None:
    """Names: what each node reads is made before, and nothing is made twice."""
    _refuse_repeated(path, "initialiser", [tensor.name for tensor in graph.initializer])
    _refuse_repeated(path, "input", [value.name for value in graph.input])
    known = {tensor.name for tensor in graph.initializer} | {value.name for value in graph.input}
    made_later = {name for node in graph.node for name in node.output if name}
    for index, node in enumerate(graph.node):
        where = f'{path}: node {index} {node.op_type} ("{node.name}")'
        for name in node.input:
            if name and name not in known:
                what = "made only later" if name in made_later else "no input, no initialiser and no node's output"
                raise ModelError(f'{where} reads "{name}", which is {what}; export the model again')
        for name in node.output:
            if name and name in known:
                raise ModelError(f'{where} makes "{name}", which exists already; names must differ')
            known.add(name)
    for value in graph.output:
        if value.name not in known:
            raise ModelError(f'{path}: output "{value.name}" is made by no node; export the model again')


def _refuse_repeated(path: Path, what: str, names: list[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ModelError(f'{path} has more than one {what} with the name "{repeated[0]}"; names must differ')


def without_weights(onnx: Any, model: Any) -> Any:
    """The model with large initialisers as typed inputs: for checks that would copy them only to ignore them."""
    light = onnx.ModelProto()
    light.ir_version = model.ir_version
    light.opset_import.extend(model.opset_import)
    light.graph.name = "graph"  # any but none; the file's own need not be text
    light.graph.node.extend(model.graph.node)
    light.graph.input.extend(model.graph.input)
    light.graph.output.extend(model.graph.output)
    light.graph.value_info.extend(model.graph.value_info)
    inputs = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.ByteSize() <= LARGEST_CHECKED:
            light.graph.initializer.append(tensor)
        elif tensor.name not in inputs:
            info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            light.graph.input.append(info)
    return light


def _run_checker(onnx: Any, model: Any, path: Path) -> None:
    """ONNX's own check of every node against its schema."""
    light = without_weights(onnx, model)
    domains = {entry.domain for entry in light.opset_import}
    if MICROSOFT not in domains and any(node.domain == MICROSOFT for node in light.graph.node):
        light.opset_import.append(onnx.helper.make_opsetid(MICROSOFT, 1))  # ONNX Runtime does not ask for it
    for value in (*light.graph.input, *light.graph.output):
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.shape.SetInParent()  # which runtimes do without
    try:
        onnx.checker.check_model(light)
    except refusals() as error:
        raise ModelError(f"{path} is no valid ONNX model: {first_line(error)}; export it again") from error
