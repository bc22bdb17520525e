"""Rewrites operators of older opsets in the form of opset 13, which is the oldest one that converters know.

What is an input today often was an attribute: axes, bounds, sizes. So most rewriting makes initialisers of attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError
from uaccel.frontend.checks import first_line
from uaccel.frontend.onnx.graph import MICROSOFT, STANDARD, onnx_package, refusals
from uaccel.frontend.onnx.schema import all_graphs

WANTED: Final = 13
AGAIN: Final = f"export the model again for opset {WANTED} or later"
FORMS_SINCE: Final = 7  # Before, operators did not broadcast by themselves; onnx converts such models.
OWN: Final[Mapping[str, int]] = {"LayerNormalization": 17}  # Operators by the opset that brought them to ONNX.
INITIALISERS_SINCE: Final = 4  # The IR version since which an initialiser need not be an input, too.


def modernised(onnx: Any, model: Any, opset: int, path: Path) -> Any:
    """The model with opset 13's forms; names stay. ModelError for what has none."""
    if opset < FORMS_SINCE:
        model, opset = _converted(onnx, model, path), FORMS_SINCE
    types, graphs = _types(onnx, model), list(all_graphs(model.graph))
    for each in graphs:
        _Rewriting(onnx, model.graph, each, opset, path, types).run()
    model.ir_version = max(model.ir_version, INITIALISERS_SINCE)
    for entry in model.opset_import:
        if entry.domain in STANDARD:
            entry.version = WANTED
    return model


def own_operators(model: Any, opset: int) -> None:
    """Gives operators that ONNX Runtime had before ONNX its domain, which onnx's checks leave alone.

    Its optimiser writes them into files of older opsets."""
    for graph in all_graphs(model.graph):
        for node in graph.node:
            if node.domain in STANDARD and opset < OWN.get(node.op_type, 0):
                node.domain = MICROSOFT


def _converted(onnx: Any, model: Any, path: Path) -> Any:
    try:
        return onnx_package("onnx.version_converter").convert_version(model, FORMS_SINCE)
    except refusals() as error:
        raise ModelError(
            f"{path} is of an opset before {FORMS_SINCE}, and onnx cannot convert it: {first_line(error)}; {AGAIN}"
        ) from error


def _types(onnx: Any, model: Any) -> Mapping[str, tuple[int, int | None]]:
    """The element type and the rank of each tensor. The rank is None where it is unknown, or where graphs inside of the
    model use one name for tensors of several ranks."""
    found: dict[str, tuple[int, int | None]] = {t.name: (t.data_type, len(t.dims)) for t in model.graph.initializer}
    try:
        model = onnx.shape_inference.infer_shapes(model)
    except refusals():
        pass  # what the file itself says must do
    for graph in all_graphs(model.graph):
        for value in (*graph.value_info, *graph.input, *graph.output):
            kind = value.type.tensor_type
            rank = len(kind.shape.dim) if kind.HasField("shape") else None
            known = found.get(value.name, (0, rank))[1]
            found[value.name] = (kind.elem_type, rank if rank == known else None)
    return found


@dataclass(frozen=True)
class _Rewriting:
    """Rewrites one graph. ``main`` gets the initialisers, which graphs inside others can read, too."""

    onnx: Any
    main: Any
    graph: Any
    opset: int
    path: Path
    types: Mapping[str, tuple[int, int | None]]

    def run(self) -> None:
        nodes = list(self.graph.node)
        made: list[Any] = []
        for index, node in enumerate(nodes):
            before, rewrite = FORMS.get(node.op_type, (0, _same)) if node.domain in STANDARD else (0, _same)
            try:
                made += rewrite(self, node) if self.opset < before else [node]
            except ValueError as error:
                where = f'node {index} {node.op_type} ("{node.name or next(iter(node.output), "")}")'
                raise ModelError(f"{self.path}: {where} of opset {self.opset}: {error}; {AGAIN}") from error
        if len(made) != len(nodes):
            del self.graph.node[:]
            self.graph.node.extend(made)

    def take(self, node: Any, name: str) -> Any:
        """Removes an attribute; gives its value, None where the node has none of that name."""
        for position, attribute in enumerate(node.attribute):
            if attribute.name == name:
                value = self.onnx.helper.get_attribute_value(attribute)
                del node.attribute[position]
                return value
        return None

    def constant(self, node: Any, what: str, value: Any, kind: int) -> str:
        """The name of a new initialiser; the branches of an ``If`` may give their tensors the same names."""
        name = f"{next(iter(node.output), '')}:{what}:{len(self.main.initializer)}"
        data = np.asarray(value, self.onnx.helper.tensor_dtype_to_np_dtype(kind))
        self.main.initializer.append(self.onnx.numpy_helper.from_array(data, name))
        return name

    def indices(self, node: Any, what: str, value: Any) -> str:
        return self.constant(node, what, value, self.onnx.TensorProto.INT64)

    def number(self, node: Any, what: str, value: float) -> str:
        """A new constant of the type of the node's first input."""
        kind, _ = self.types.get(node.input[0], (0, None))
        return self.constant(node, what, value, kind or self.onnx.TensorProto.FLOAT)

    def value(self, name: str) -> Any:
        """The constant of that name."""
        made = [node for node in self.graph.node if node.op_type == "Constant" and name in node.output]
        tensors = [attribute.t for node in made for attribute in node.attribute if attribute.name == "value"]
        for tensor in (*tensors, *(each for each in self.main.initializer if each.name == name)):
            return self.onnx.numpy_helper.to_array(tensor)
        raise ValueError(f'"{name}" is no constant')


Rewrite = Callable[[_Rewriting, Any], Sequence[Any]]  # Gives the nodes that take the place of one.


def _same(_: _Rewriting, node: Any) -> Sequence[Any]:
    return [node]


def _append(node: Any, inputs: Iterable[str], behind: int) -> None:
    """Appends inputs behind the first ones; names that are empty at the end are left out."""
    names = [*node.input[:behind], *[""] * (behind - len(node.input)), *inputs]
    while names and not names[-1]:
        names.pop()
    del node.input[:]
    node.input.extend(names)


def _as_input(name: str) -> Rewrite:
    """An attribute of integers becomes the second input."""

    def rewrite(graph: _Rewriting, node: Any) -> Sequence[Any]:
        value = graph.take(node, name)
        if value is not None:
            _append(node, [graph.indices(node, name, np.atleast_1d(value))], 1)
        return [node]

    return rewrite


def _clip(graph: _Rewriting, node: Any) -> Sequence[Any]:
    bounds = {name: graph.take(node, name) for name in ("min", "max")}
    _append(node, ["" if v is None else graph.number(node, name, v) for name, v in bounds.items()], 1)
    return [node]


def _dropout(graph: _Rewriting, node: Any) -> Sequence[Any]:
    """An inference leaves everything as it is, whatever the ratio."""
    graph.take(node, "ratio")
    return [node]


def _pad(graph: _Rewriting, node: Any) -> Sequence[Any]:
    pads, value = graph.take(node, "pads"), graph.take(node, "value")
    _append(node, [graph.indices(node, "pads", pads), "" if value is None else graph.number(node, "value", value)], 1)
    return [node]


def _slice(graph: _Rewriting, node: Any) -> Sequence[Any]:
    parts = {name: graph.take(node, name) for name in ("starts", "ends", "axes")}
    _append(node, ["" if v is None else graph.indices(node, name, v) for name, v in parts.items()], 1)
    return [node]


def _batch_norm(graph: _Rewriting, node: Any) -> Sequence[Any]:
    if graph.take(node, "spatial") == 0:
        raise ValueError("it has a mean for each place (spatial = 0), which no later opset has")
    return [node]


def _scan(_: _Rewriting, __: Any) -> Sequence[Any]:
    raise ValueError("it scans each sequence of a batch, which no later opset does")


def _resize(graph: _Rewriting, node: Any) -> Sequence[Any]:
    """Resize and Upsample before opset 11: scales alone, and one rule to find what a place is made of."""
    scales = graph.take(node, "scales")
    given = scales is not None
    scales = graph.constant(node, "scales", scales, graph.onnx.TensorProto.FLOAT) if given else node.input[1]
    mode = graph.take(node, "mode") or b"nearest"
    if mode == b"nearest":
        factors = graph.value(scales)
        smaller = bool((factors < 1).any())
        if smaller and (factors > 1).any():
            raise ValueError("it makes one axis smaller and another one larger")
        node.attribute.append(graph.onnx.helper.make_attribute("nearest_mode", "ceil" if smaller else "floor"))
    node.op_type = "Resize"
    node.attribute.append(graph.onnx.helper.make_attribute("mode", mode))
    node.attribute.append(graph.onnx.helper.make_attribute("coordinate_transformation_mode", "asymmetric"))
    _append(node, ["", scales], 1)
    return [node]


def _scatter(_: _Rewriting, node: Any) -> Sequence[Any]:
    node.op_type = "ScatterElements"
    return [node]


def _softmax(graph: _Rewriting, node: Any) -> Sequence[Any]:
    """An axis meant itself and all behind it, as if they were one."""
    axis, (_, rank) = graph.take(node, "axis"), graph.types.get(node.input[0], (0, None))
    axis, make = 1 if axis is None else axis, graph.onnx.helper
    node.attribute.append(make.make_attribute("axis", -1))
    if axis == -1 or (rank is not None and axis == rank - 1):
        return [node]
    source, result = node.input[0], node.output[0]
    flat, shape, softened = (f"{result}:{what}" for what in ("flat", "shape", "softened"))
    node.input[0], node.output[0] = flat, softened
    return [
        make.make_node("Flatten", [source], [flat], axis=axis),
        node,
        make.make_node("Shape", [source], [shape]),
        make.make_node("Reshape", [softened, shape], [result]),
    ]


# The opset that brought today's form, and what makes it of an older one.
FORMS: Final[Mapping[str, tuple[int, Rewrite]]] = {
    "BatchNormalization": (9, _batch_norm),
    "Clip": (11, _clip),
    "Dropout": (12, _dropout),
    "Hardmax": (13, _softmax),
    "LogSoftmax": (13, _softmax),
    "Pad": (11, _pad),
    "ReduceSum": (13, _as_input("axes")),
    "Resize": (11, _resize),
    "Scan": (9, _scan),
    "Scatter": (11, _scatter),
    "Slice": (10, _slice),
    "Softmax": (13, _softmax),
    "Split": (13, _as_input("split")),
    "Squeeze": (13, _as_input("axes")),
    "TopK": (10, _as_input("k")),
    "Unsqueeze": (13, _as_input("axes")),
    "Upsample": (10, _resize),
}
