"""Reads an ONNX file and its external data, checks it, and gives its graph with static shapes as plain data."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend import checks
from uaccel.frontend.checks import first_line, need_size, need_type
from uaccel.frontend.onnx.graph import DTYPES, MICROSOFT, STANDARD, Node, OnnxGraph, onnx_package, refusals
from uaccel.frontend.onnx.older import OWN, WANTED, modernised, own_operators
from uaccel.frontend.onnx.rounded import recognised
from uaccel.frontend.onnx.schema import AGAIN, all_graphs, check_structure, dtype_name, item_size, items, tensors_of
from uaccel.model import Shape, TensorInfo, TensorSpec
from uaccel.util import incoming

# External data: weights in files beside the model, which are read only from its own folder and within limits.

# The bytes of the key ``location``, which each file with external data has. Most have none, and need not be parsed.
_LOCATION: Final = b"\x0a\x08location\x12"


def weight_files(path: Path) -> tuple[Path, ...]:
    """The existing files with weights of the model. Errors in how it names them are left to the time of reading."""
    data = checks.read_file(path)
    if _LOCATION not in data:
        return ()
    from google.protobuf.message import DecodeError

    onnx = onnx_package()
    model, found = onnx.ModelProto(), set()
    with suppress(DecodeError, RuntimeError, ValueError):
        model.ParseFromString(data)
    for tensor in tensors_of(model):
        for entry in tensor.external_data:
            if tensor.data_location == onnx.TensorProto.EXTERNAL and entry.key == "location":
                with suppress(ValueError):
                    found.add(_place(entry.value, path.parent))
    return tuple(sorted(file for file in found if file.is_file()))


def read_external(onnx: Any, model: Any, path: Path) -> bool:
    """Read external data into the model; returns whether there was any."""
    total, found = 0, False
    for tensor in tensors_of(model):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        found = True
        dtype = dtype_name(onnx, tensor.data_type)
        size = items(tensor, dtype) * item_size(dtype)
        total += size
        if total > checks.LARGEST_FILE:
            raise ModelError(
                f"{path} keeps more than {checks.LARGEST_FILE} bytes of weights in other files; at most that is read"
            )
        try:
            tensor.raw_data = _content(tensor, size, path.parent)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise ModelError(
                f'cannot read the weights "{tensor.name}" that {path} keeps in a file of their own: {reason}; '
                f"put this file into {path.parent}"
            ) from error
        del tensor.external_data[:]
        tensor.data_location = onnx.TensorProto.DEFAULT
    return found


def _content(tensor: Any, size: int, folder: Path) -> bytes:
    """The bytes of a tensor in another file; ValueError or OSError says what is wrong."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    file = _place(location, folder)
    if not file.is_file():
        raise ValueError(f"{location} is {'no regular file' if file.exists() else 'not there'}")
    offset, length = _number(entries, "offset", 0), _number(entries, "length", size)
    if length != size or offset + size > file.stat().st_size:
        raise ValueError(f"{size} bytes are wanted at {offset} of {location}, which has {file.stat().st_size}")
    with incoming.opened(file) as stream:
        stream.seek(offset)
        data: bytes = stream.read(size)
    return data


def _place(location: str, folder: Path) -> Path:
    """The file of a location, with links followed: only then it is sure to lie in the folder."""
    need(location and "\0" not in location, f"it names the file {location!r}", ValueError)
    file = (folder / location).resolve()
    need(file.is_relative_to(folder.resolve()), f"{location} lies outside of the model's folder", ValueError)
    return file


def _number(entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ValueError(f"{key} is {text[:40]!r}, wanted a number of bytes")
    return int(text)


# Half precision: float16 becomes float32, which holds each of its numbers exactly.
#
# The model then computes in float32 and rounds nothing to float16, whatever its nodes say of types.

HALF, SINGLE = 10, 1  # The numbers of the types in ``TensorProto.DataType``.
# Attributes whose number is a type.
NAMING_TYPES: Final = ("to", "dtype", "output_dtype", "softmax_precision", "stash_type")


def widened(onnx: Any, model: Any) -> None:
    """Change a model's float16 to float32 in place. Its functions must be inlined already."""
    for graph in all_graphs(model.graph):
        for values in (graph.input, graph.output, graph.value_info):
            for value in values:
                _widen_type(value.type)
        for tensor in graph.initializer:
            _widen_tensor(onnx, tensor)
        for sparse in graph.sparse_initializer:
            _widen_tensor(onnx, sparse.values)
        for node in graph.node:
            for attribute in node.attribute:
                _widen_attribute(onnx, attribute)


def _widen_attribute(onnx: Any, attribute: Any) -> None:
    if attribute.name in NAMING_TYPES and attribute.i == HALF:
        attribute.i = SINGLE
    if attribute.HasField("t"):
        _widen_tensor(onnx, attribute.t)
    if attribute.HasField("sparse_tensor"):
        _widen_tensor(onnx, attribute.sparse_tensor.values)
    for tensor in attribute.tensors:
        _widen_tensor(onnx, tensor)


def _widen_tensor(onnx: Any, tensor: Any) -> None:
    if tensor.data_type == HALF:
        values = onnx.numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))


def _widen_type(kind: Any) -> None:
    """Widen the type of a tensor, also within sequences and optional values."""
    while kind.WhichOneof("value") in ("sequence_type", "optional_type"):
        kind = getattr(kind, kind.WhichOneof("value")).elem_type
    if kind.HasField("tensor_type") and kind.tensor_type.elem_type == HALF:
        kind.tensor_type.elem_type = SINGLE


# Loading: an ONNX file becomes a checked protobuf.

LARGEST_CHECKED = 1 << 12  # Most bytes of an initialiser that ONNX's checks are given; they do not need the weights.


@dataclass(frozen=True)
class LoadedFile:
    """Holds a loaded model. ``data`` is one file with all of it, even if its weights came in files beside it."""

    model: Any
    data: bytes
    digest: str
    opset: int


def load(path: Path, budget: checks.Budget) -> LoadedFile:
    """The model, with external data read in and functions of the file's own inlined.

    The structure is checked before native code gets the model, and again after inlining, which puts values in place of
    references to attributes of functions. The first check has charged for inlined nodes; the second has a new budget.
    ``data`` and digest stay those of the file where operators of an older opset are rewritten.
    """
    onnx = onnx_package()
    data = checks.read_file(path)
    model = _parsed(onnx, data, path)
    opset = _checked_versions(onnx, model, path)
    own_operators(model, opset)
    check_structure(onnx, model, budget, path)
    if read_external(onnx, model, path):
        data = _as_one_file(model, path)
    if model.functions:
        model = _inlined(model, path)
        check_structure(onnx, model, checks.Budget(path), path)
    _sort(model.graph)
    _check_graph(model.graph, path)
    _run_checker(onnx, model, path)
    if opset < WANTED:
        model, opset = modernised(onnx, model, opset, path), WANTED
        _run_checker(onnx, model, path)
    widened(onnx, model)
    recognised(onnx, model)
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
    need(model.HasField("graph"), f"{path} holds no graph ({len(data)} bytes), so it is no ONNX model; export it again")
    need(model.graph.node, f"{path} is empty: its graph has no nodes; nothing to compile")
    need(model.graph.output, f"{path} has no outputs; export the model again")
    return model


def _checked_versions(onnx: Any, model: Any, path: Path) -> int:
    """The version of the standard operators; ModelError for versions that cannot be read."""
    newest_ir, newest = onnx.IR_VERSION, onnx.defs.onnx_opset_version()
    upgrade = f"onnx {onnx.__version__} knows up to {{}}: pip install -U onnx, or export the model for an older one"
    if model.ir_version > newest_ir:
        raise ModelError(f"{path} has IR version {model.ir_version}; {upgrade.format(newest_ir)}")
    entries = [entry for entry in model.opset_import if entry.domain in STANDARD]
    if not entries and all(node.domain not in STANDARD for node in model.graph.node):  # as for scikit-learn's models
        entries = [model.opset_import.add(domain="", version=WANTED)]
    opset = entries[-1].version if entries else 0  # ONNX Runtime takes the last, too, where a file has several.
    for entry in entries:
        entry.version = opset
    need(opset >= 1, f"{path} does not say which opset of ai.onnx its operators are of; export the model again")
    if opset > newest:
        raise ModelError(f"{path} uses opset {opset}; {upgrade.format(newest)}")
    return opset


def _sort(graph: Any) -> None:
    """Sort nodes behind those whose results they read: converters to float16 append casts at the end.

    A cycle leaves the order as it is, and the check of names that follows refuses it.
    """
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
    """Check that what each node reads is made before it, and that nothing is made twice."""
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
        need(value.name in known, f'{path}: output "{value.name}" is made by no node; export the model again')


def _refuse_repeated(path: Path, what: str, names: list[str]) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ModelError(f'{path} has more than one {what} with the name "{repeated[0]}"; names must differ')


def without_weights(onnx: Any, model: Any) -> Any:
    """The model with large initialisers turned into typed inputs, for checks that would only copy the weights."""
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


# The graph with static shapes, from the checked protobuf.

InputShapes = Mapping[str, Shape]


def read(path: Path, input_shapes: InputShapes, budget: checks.Budget) -> tuple[OnnxGraph, LoadedFile]:
    """The graph, with the shapes of inputs that the user gave."""
    file = load(path, budget)
    onnx = onnx_package()
    graph = file.model.graph
    constants = {tensor.name: np.asarray(onnx.numpy_helper.to_array(tensor)) for tensor in graph.initializer}
    values = [value for value in graph.input if value.name not in constants]
    inputs = _inputs(onnx, values, input_shapes, path)
    _fix_inputs(onnx, values, inputs)
    if input_shapes:  # so that the file in an archive is the model that was compiled
        _forget_shapes(file.model)
        file = replace(file, data=_with_shapes(onnx, file.data, inputs))
    nodes = tuple(node_of(onnx, index, node) for index, node in enumerate(graph.node))
    outputs = tuple(value.name for value in graph.output)
    inferred = _inferred(onnx, file.model)
    return OnnxGraph(nodes, constants, inputs, outputs, inferred, file.opset), file


def _with_shapes(onnx: Any, data: bytes, inputs: tuple[TensorSpec, ...]) -> bytes:
    """The file with the shapes of its inputs."""
    model, shapes = onnx.ModelProto(), {spec.name: spec for spec in inputs}
    model.ParseFromString(data)
    values = [value for value in model.graph.input if value.name in shapes]
    _fix_inputs(onnx, values, tuple(shapes[value.name] for value in values))
    _forget_shapes(model)
    return bytes(model.SerializeToString(deterministic=True))


def _inputs(onnx: Any, values: list[Any], input_shapes: InputShapes, path: Path) -> tuple[TensorSpec, ...]:
    names = [value.name for value in values]
    for name in input_shapes:
        need(name in names, f'{path} has no input "{name}" for --input-shape; its inputs are: {", ".join(names)}')
    return tuple(_input(onnx, value, input_shapes, path) for value in values)


def _input(onnx: Any, value: Any, input_shapes: InputShapes, path: Path) -> TensorSpec:
    name = value.name
    if not value.type.HasField("tensor_type"):
        kind = value.type.WhichOneof("value") or "value without a type"
        raise ModelError(
            f'{path}: input "{name}" is of {kind}, which cannot be compiled; export the model with a tensor instead'
        )
    kind = value.type.tensor_type
    dtype = dtype_name(onnx, kind.elem_type)
    need_type(dtype, DTYPES, f'{path}: input "{name}"')
    declared = _declared(kind)
    shape = input_shapes.get(name)
    if declared is not None:
        shape = checks.fixed_shape(path, name, declared, shape)
    elif shape is None:
        wanted = f"firmware needs every extent fixed: add --input-shape {name}:D0,D1,... with its extents"
        raise ModelError(f'{path}: input "{name}" has no shape; {wanted}')
    info = TensorInfo(shape, dtype)
    if any(extent < 0 for extent in shape):
        raise ModelError(f'{path}: input "{name}" ({info}) has an extent below 0; export the model again')
    checks.need_elements(info, f'{path}: input "{name}"')
    need_size(info, f'{path}: input "{name}"')
    return TensorSpec(name, info)


def _declared(kind: Any) -> list[int | str] | None:
    """The extents in the file, with names for those that may vary (some write -1); None where no rank is known."""
    if not kind.HasField("shape"):
        return None
    return [
        dim.dim_value if dim.WhichOneof("value") == "dim_value" and dim.dim_value != -1 else dim.dim_param or "?"
        for dim in kind.shape.dim
    ]


def _fix_inputs(onnx: Any, values: list[Any], inputs: tuple[TensorSpec, ...]) -> None:
    for value, spec in zip(values, inputs, strict=True):
        kind = value.type.tensor_type.elem_type
        value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, kind, list(spec.info.shape)))


def node_of(onnx: Any, index: int, proto: Any) -> Node:
    """A node as plain data."""
    domain = "" if proto.domain == "ai.onnx" or proto.op_type in OWN else proto.domain
    attributes = {attribute.name: _attribute(onnx, attribute) for attribute in proto.attribute}
    return Node(index, proto.op_type, domain, proto.name, tuple(proto.input), tuple(proto.output), attributes, proto)


def _attribute(onnx: Any, attribute: Any) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, onnx.TensorProto):
        return np.asarray(onnx.numpy_helper.to_array(value))
    if isinstance(value, (list, tuple)) or type(value).__name__.startswith("Repeated"):
        return tuple(entry.decode("utf-8", "replace") if isinstance(entry, bytes) else entry for entry in value)
    return value


def _forget_shapes(model: Any) -> None:
    """Remove shapes of intermediate tensors and outputs, which may not hold for the shapes that the user gives."""
    model.graph.ClearField("value_info")
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")


def _inferred(onnx: Any, model: Any) -> dict[str, TensorInfo]:
    """The types of tensors by ONNX's shape inference, as far as they are static."""
    light = without_weights(onnx, model)
    try:
        inferred = onnx.shape_inference.infer_shapes(light, data_prop=True)
    except refusals():
        return {}  # the importer meets what is wrong, and says where
    found = {}
    for value in (*inferred.graph.value_info, *inferred.graph.output):
        kind = value.type.tensor_type
        declared = _declared(kind) if value.type.HasField("tensor_type") else None
        if declared is not None and all(isinstance(extent, int) for extent in declared):
            found[value.name] = TensorInfo(tuple(map(int, declared)), dtype_name(onnx, kind.elem_type))
    unsure = _misjudged(onnx, model)
    return {name: info for name, info in found.items() if name not in unsure}


def _misjudged(onnx: Any, model: Any) -> set[str]:
    """The tensors that depend on an operator of which ONNX's shape inference says something else than all runtimes.

    Before opset 22 it counts windows of ``ceil_mode`` that begin in the padding. It takes the spectra of STFT for
    two-sided where nothing is said. It makes 32 out of 10 elements and a scale of 3.3, and runtimes make 33, in
    float32.
    """
    opset = max((entry.version for entry in model.opset_import if entry.domain in STANDARD), default=0)
    scales = {entry.name for entry in model.graph.initializer if _holds_fractions(onnx, entry)}
    behind: set[str] = set()
    for node in model.graph.node:
        given = {entry.name: entry.i for entry in node.attribute}
        unsure = not behind.isdisjoint(node.input)
        unsure |= opset < 22 and node.op_type.endswith("Pool") and bool(given.get("ceil_mode", 0))
        unsure |= node.op_type == "STFT" and "onesided" not in given
        unsure |= node.op_type == "Resize" and not scales.isdisjoint(node.input[2:3])
        if unsure:
            behind.update(node.output)
    return behind


def _holds_fractions(onnx: Any, tensor: Any) -> bool:
    few = tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) == 1 and tensor.dims[0] <= 8
    return few and bool(np.any(np.mod(onnx.numpy_helper.to_array(tensor), 1)))
