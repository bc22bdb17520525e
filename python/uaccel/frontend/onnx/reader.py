"""A checked protobuf becomes a ``Graph`` of static shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from uaccel.errors import ModelError
from uaccel.frontend.budget import Budget
from uaccel.frontend.checks import need_elements, need_size, need_type, shape_text
from uaccel.frontend.onnx.graph import DTYPES, Graph, Node
from uaccel.frontend.onnx.loading import LoadedFile, load, without_weights
from uaccel.frontend.onnx.package import onnx_package, refusals
from uaccel.frontend.onnx.structure import dtype_name
from uaccel.model import Shape, TensorInfo, TensorSpec

InputShapes = Mapping[str, Shape]


def read(path: Path, input_shapes: InputShapes, budget: Budget) -> tuple[Graph, LoadedFile]:
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
        file = replace(file, data=file.model.SerializeToString(deterministic=True))
    nodes = tuple(node_of(onnx, index, node) for index, node in enumerate(graph.node))
    outputs = tuple(value.name for value in graph.output)
    inferred = _inferred(onnx, file.model)
    return Graph(nodes, constants, inputs, outputs, inferred, file.opset), file


def _inputs(onnx: Any, values: list[Any], input_shapes: InputShapes, path: Path) -> tuple[TensorSpec, ...]:
    names = [value.name for value in values]
    for name in input_shapes:
        if name not in names:
            raise ModelError(f'{path} has no input "{name}" for --input-shape; its inputs are: {", ".join(names)}')
    return tuple(_input(onnx, value, input_shapes, path) for value in values)


def _input(onnx: Any, value: Any, input_shapes: InputShapes, path: Path) -> TensorSpec:
    name = value.name
    if not value.type.HasField("tensor_type"):
        raise ModelError(f'{path}: input "{name}" is a {value.type.WhichOneof("value")}, which cannot be compiled')
    kind = value.type.tensor_type
    dtype = dtype_name(onnx, kind.elem_type)
    need_type(dtype, DTYPES, f'{path}: input "{name}"')
    declared = _declared(kind)
    shape = input_shapes.get(name)
    if shape is None:
        shape = _static(path, name, declared)
    elif declared is not None:
        _check_given(path, name, declared, shape)
    info = TensorInfo(shape, dtype)
    if any(extent < 0 for extent in shape):
        raise ModelError(f'{path}: input "{name}" ({info}) has an extent below 0; export the model again')
    need_elements(info, f'{path}: input "{name}"')
    need_size(info, f'{path}: input "{name}"')
    return TensorSpec(name, info)


def _declared(kind: Any) -> list[int | str] | None:
    """Extents as the file has them, names for those that may vary; None where not even the rank is known."""
    if not kind.HasField("shape"):
        return None
    return [dim.dim_value if dim.WhichOneof("value") == "dim_value" else dim.dim_param or "?" for dim in kind.shape.dim]


def _static(path: Path, name: str, declared: list[int | str] | None) -> Shape:
    """The shape that the file fixes; else the option that does."""
    wanted = "firmware needs every extent fixed: add --input-shape"
    if declared is None:
        raise ModelError(f'{path}: input "{name}" has no shape; {wanted} {name}:D0,D1,... with its extents')
    loose = [axis for axis, extent in enumerate(declared) if not isinstance(extent, int)]
    if loose:
        which = ", ".join(f'{axis} ("{declared[axis]}")' if declared[axis] != "?" else str(axis) for axis in loose)
        plural = "s" if len(loose) > 1 else ""
        example = ",".join(str(extent) if isinstance(extent, int) else "1" for extent in declared)
        raise ModelError(
            f'{path}: input "{name}" {shape_text(declared)} has the dynamic dimension{plural} {which}; '
            f"{wanted} {name}:{example}, or with the extent{plural} you want"
        )
    return tuple(int(extent) for extent in declared)


def _check_given(path: Path, name: str, declared: list[int | str], shape: Shape) -> None:
    given = ",".join(map(str, shape))
    if len(shape) != len(declared):
        raise ModelError(
            f'{path}: --input-shape {name}:{given} has {len(shape)} extents; input "{name}" is {shape_text(declared)}'
        )
    for axis, (extent, wanted) in enumerate(zip(declared, shape, strict=True)):
        if isinstance(extent, int) and extent != wanted:
            raise ModelError(
                f'{path}: --input-shape {name}:{given} contradicts the file: dimension {axis} of input "{name}" '
                f"{shape_text(declared)} is fixed at {extent}"
            )


def _fix_inputs(onnx: Any, values: list[Any], inputs: tuple[TensorSpec, ...]) -> None:
    for value, spec in zip(values, inputs, strict=True):
        kind = value.type.tensor_type.elem_type
        value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, kind, list(spec.info.shape)))


def node_of(onnx: Any, index: int, proto: Any) -> Node:
    """A node as plain data."""
    domain = "" if proto.domain == "ai.onnx" else proto.domain
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
    """What a file notes of its tensors holds for the shapes that it was made with."""
    model.graph.ClearField("value_info")
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")


def _inferred(onnx: Any, model: Any) -> dict[str, TensorInfo]:
    """Static types by ONNX's rules."""
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
    return found
