"""Checks a parsed ONNX file against the format and ONNX's operator definitions, before native code works on it.

ONNX's checker, inliner and shape inference are native code that takes much for granted: a wrong node may crash them,
keep them busy for good, or make them allocate without end. So what they rely on is checked here, in Python.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import MOST_RANK, Budget
from uaccel.frontend.onnx.graph import FOUR_BITS, STANDARD

# Nodes, against the definitions of their operators.

FunctionKey = tuple[str, str, str]  # Domain, name and overload of a function that the file defines.

AGAIN: Final = "export the model again"
MOST_OPERANDS: Final = 4096
LARGEST_NUMBER: Final = (1 << 31) - 1  # Native code keeps many numbers in 32 bits.
# Attributes that operators divide by or count with, so that they must be 1 or more.
POSITIVE: Final = ("blocksize", "dilations", "group", "kernel_shape", "num_groups", "num_outputs", "size", "strides")
ANY_NUMBER: Final = ("Constant",)  # Operators whose integers are data.
_BESIDE: Final = ("name", "doc_string", "type", "ref_attr_name")  # Fields of an attribute that are not its value.
_LISTS: Final = ("floats", "ints", "strings", "tensors", "graphs", "sparse_tensors", "type_protos")
_FIELDS: Final = ("f", "i", "s", "t", "g", *_LISTS[:5], "tp", "type_protos", "sparse_tensor", "sparse_tensors")
_KINDS: Final = ("FLOAT", "INT", "STRING", "TENSOR", "GRAPH", "FLOATS", "INTS", "STRINGS", "TENSORS", "GRAPHS")
_OTHER_KINDS: Final = ("TYPE_PROTO", "TYPE_PROTOS", "SPARSE_TENSOR", "SPARSE_TENSORS")
# The field in which an attribute of each kind has its value.
FIELD_OF_KIND: Final = dict(zip((*_KINDS, *_OTHER_KINDS), _FIELDS, strict=True))


_TERM: Final = r"[A-Za-z]*(\.\.\.[A-Za-z]*)?"
# The equation of an Einsum without spaces. ONNX's shape inference never returns if it has other characters.
EQUATION: Final = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")


@dataclass(frozen=True)
class SchemaScope:
    """Holds what nodes of a graph or function may use; ``parameters`` are attributes of the function."""

    onnx: Any
    opsets: Mapping[str, int]
    functions: Mapping[FunctionKey, Any] = field(default_factory=dict)
    parameters: Container[str] = ()


def key_of(node: Any) -> FunctionKey:
    """The key of the function that a node calls if the file defines it."""
    return standard(node.domain), node.op_type, node.overload


def standard(domain: str) -> str:
    """The domain, with one name for the standard one, which has two."""
    return "" if domain in STANDARD else domain


def check_node(node: Any, where: str, scope: SchemaScope) -> None:
    """Check a node against its operator's definition, or its function; without either only its attributes."""
    if max(len(node.input), len(node.output), len(node.attribute)) > MOST_OPERANDS:
        raise ModelError(f"{where} has more than {MOST_OPERANDS} inputs, outputs or attributes; split it")
    repeated = [name for name, count in Counter(entry.name for entry in node.attribute).items() if count > 1]
    if repeated:
        raise ModelError(f'{where} has attribute "{repeated[0]}" twice; {AGAIN}')
    for attribute in node.attribute:
        _check_attribute(attribute, where, scope)
        if attribute.name in POSITIVE or node.op_type not in ANY_NUMBER:
            _check_numbers(attribute, where)
        if node.op_type == "Einsum" and attribute.name == "equation":
            _check_equation(attribute, where)
    called = scope.functions.get(key_of(node))
    if called is not None:
        for what, given, known in (("inputs", node.input, called.input), ("outputs", node.output, called.output)):
            need(len(given) <= len(known), f"{where} has {len(given)} {what}, its function takes {len(known)}; {AGAIN}")
        return
    schema = _schema(node, scope)
    if schema is not None:
        _check_operands(where, "input", node.input, schema.inputs, schema.min_input, schema.max_input)
        _check_operands(where, "output", node.output, schema.outputs, schema.min_output, schema.max_output)
        _check_kinds(node, where, schema, scope.onnx)


def _schema(node: Any, scope: SchemaScope) -> Any | None:
    version = scope.opsets.get(standard(node.domain))
    if version is None or not 0 < version <= LARGEST_NUMBER:
        return None  # the file does not say which, or none that there is: ONNX's own check refuses it
    try:
        return scope.onnx.defs.get_schema(node.op_type, version, standard(node.domain))
    except scope.onnx.defs.SchemaError:
        return None


def _check_operands(where: str, what: str, names: Sequence[str], formals: Any, fewest: int, most: int) -> None:
    """Check the number of inputs or outputs, and that only optional ones are left out."""
    if not fewest <= len(names) <= most:
        wanted = (
            str(fewest)
            if fewest == most
            else f"{fewest} or more"
            if most > LARGEST_NUMBER >> 1
            else f"{fewest} to {most}"
        )
        raise ModelError(f"{where} has {len(names)} {what}s, wanted {wanted}; {AGAIN}")
    for position, name in enumerate(names):
        formal = formals[min(position, len(formals) - 1)]
        kind = formal.option.name
        if not name and kind != "Optional" and not (what == "output" and kind == "Variadic"):
            raise ModelError(f'{where} leaves out {what} {position} ("{formal.name}"), which it needs; {AGAIN}')


def _check_kinds(node: Any, where: str, schema: Any, onnx: Any) -> None:
    """Check that known attributes are of the defined kind, and that none is missing."""
    given = {attribute.name: attribute for attribute in node.attribute}
    for name, known in schema.attributes.items():
        if name in given:
            wanted, seen = known.type.name, onnx.AttributeProto.AttributeType.Name(given[name].type)
            need(seen == wanted, f'{where}: attribute "{name}" is of kind {seen}, wanted {wanted}; {AGAIN}')
        elif known.required:
            raise ModelError(f'{where} lacks attribute "{name}", which it needs; {AGAIN}')


def _check_attribute(attribute: Any, where: str, scope: SchemaScope) -> None:
    """Check that an attribute has one value of its kind, or that within a function it refers to one of the function."""
    seen = {descriptor.name for descriptor, _ in attribute.ListFields()} - set(_BESIDE)
    if attribute.ref_attr_name:
        if attribute.ref_attr_name not in scope.parameters:
            raise ModelError(
                f'{where}: attribute "{attribute.name}" refers to attribute "{attribute.ref_attr_name}" of a function, '
                f"and there is none; {AGAIN}"
            )
        need(not seen, f'{where}: attribute "{attribute.name}" has a value and refers to another; {AGAIN}')
        return
    kinds = scope.onnx.AttributeProto.AttributeType
    kind = kinds.Name(attribute.type) if attribute.type in kinds.values() else str(attribute.type)
    wanted = FIELD_OF_KIND.get(kind, "")
    if not wanted or seen - {wanted} or (not seen and wanted not in _LISTS):
        raise ModelError(f'{where}: attribute "{attribute.name}" of kind {kind} has no value of that kind; {AGAIN}')


def _check_equation(attribute: Any, where: str) -> None:
    text = attribute.s.decode("latin-1")
    if not attribute.ref_attr_name and not EQUATION.fullmatch(text.replace(" ", "")):
        raise ModelError(f'{where}: attribute "equation" is {text[:80]!r}, wanted letters, commas, "..." and one "->"')


def _check_numbers(attribute: Any, where: str) -> None:
    """Check that no number makes native code divide by zero or overflow 32 bits.

    The least is -(2**31 - 1), as the negative of -(2**31) overflows.
    """
    least = 1 if attribute.name in POSITIVE else -LARGEST_NUMBER
    for number in (*attribute.ints, *([attribute.i] if attribute.HasField("i") else [])):
        if not least <= number <= LARGEST_NUMBER:
            raise ModelError(
                f'{where}: attribute "{attribute.name}" holds {number}, wanted numbers from {least} to {LARGEST_NUMBER}'
            )


# The whole file: graphs, functions and tensors.

DEEPEST_CALL: Final = 32  # Functions that call each other in a row.
# The field in which a tensor without raw data has its elements, for each type.
_DATA: Final = {
    "float_data": ("float32",),
    "int32_data": ("int32", "int16", "int8", "uint16", "uint8", "bool", "float16", *FOUR_BITS),
    "int64_data": ("int64",),
    "double_data": ("float64",),
    "uint64_data": ("uint64", "uint32"),
}
FIELD_OF: Final = {dtype: name for name, dtypes in _DATA.items() for dtype in dtypes}


def check_structure(onnx: Any, model: Any, budget: Budget, path: Path) -> None:
    """Check all of a file, and charge the budget for the nodes and bytes that inlining its functions makes."""
    functions = _functions(model, path)
    opsets = _opsets(model.opset_import)
    scope = SchemaScope(onnx, opsets, functions)
    for name, function in functions.items():
        own = {**opsets, **_opsets(function.opset_import)}
        parameters = {*function.attribute, *(entry.name for entry in function.attribute_proto)}
        inner = replace(scope, opsets=own, parameters=parameters)
        _check_nodes(function.node, f'{path}: function "{name[1]}": ', inner)
    _check_graph(model.graph, f"{path}: ", scope)
    cost = _Costs(functions, path).of_nodes(model.graph.node)
    budget.nodes(cost.nodes)
    budget.bytes(cost.copied)


def dtype_name(onnx: Any, kind: int) -> str:
    """NumPy's name of an element type; ONNX's own where NumPy has none."""
    name = str(onnx.TensorProto.DataType.Name(kind)).lower() if kind in onnx.TensorProto.DataType.values() else ""
    return {"float": "float32", "double": "float64"}.get(name, name or f"type {kind}")


def tensors_of(model: Any) -> Iterator[Any]:
    """Every dense tensor of a file: initialisers and attributes, also in functions and inner graphs."""
    for function in model.functions:
        yield from _tensors_of_nodes(function.node)
    yield from _tensors_of_graph(model.graph)


def _tensors_of_graph(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    yield from _tensors_of_nodes(graph.node)


def _tensors_of_nodes(nodes: Any) -> Iterator[Any]:
    for node in nodes:
        for attribute in node.attribute:
            yield from attribute.tensors
            if attribute.HasField("t"):
                yield attribute.t
            for graph in graphs_of(attribute):
                yield from _tensors_of_graph(graph)


def all_graphs(graph: Any) -> Iterator[Any]:
    """The graph, and those inside its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in graphs_of(attribute):
                yield from all_graphs(inner)


def graphs_of(attribute: Any) -> list[Any]:
    return [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]


def _opsets(entries: Any) -> dict[str, int]:
    return {standard(entry.domain): entry.version for entry in entries}


def _functions(model: Any, path: Path) -> dict[FunctionKey, Any]:
    """The file's own functions by their keys, which must differ."""
    found: dict[FunctionKey, Any] = {}
    for function in model.functions:
        where, names = f"{path}: a function: ", (function.domain, function.name, function.overload)
        _check_texts(where, (*names, *function.input, *function.output, *function.attribute))
        _check_texts(where, (entry.name for entry in function.attribute_proto))
        key = (standard(function.domain), function.name, function.overload)
        need(key not in found, f'{path} has two functions "{function.name}"; names must differ')
        found[key] = function
    return found


def _check_graph(graph: Any, where: str, scope: SchemaScope) -> None:
    values = (*graph.input, *graph.output, *graph.value_info)
    _check_texts(where, (entry.name for entry in (*graph.initializer, *values)))
    _check_texts(where, (dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim))
    for tensor in graph.initializer:
        check_tensor(scope.onnx, tensor, f'{where}initialiser "{tensor.name}"')
    if graph.sparse_initializer:
        names = ", ".join(tensor.values.name for tensor in graph.sparse_initializer)
        raise ModelError(f"{where}sparse initialisers ({names}) cannot be compiled; store them dense")
    for value in values:
        rank = len(value.type.tensor_type.shape.dim)
        need(rank <= MOST_RANK, f'{where}"{value.name}" has {rank} dimensions; at most {MOST_RANK} can be compiled')
    _check_nodes(graph.node, where, scope)


def _check_texts(where: str, texts: Iterable[Any]) -> None:
    """Check that names are valid UTF-8: where they are not, protobuf gives bytes."""
    for text in texts:
        if not isinstance(text, str):
            raise ModelError(f"{where}name {text[:40]!r} is no UTF-8 text; {AGAIN}")


def _check_nodes(nodes: Any, where: str, scope: SchemaScope) -> None:
    """Check nodes, and tensors and graphs in their attributes."""
    for index, node in enumerate(nodes):
        _check_texts(where, (node.op_type, node.domain, node.name, node.overload, *node.input, *node.output))
        _check_texts(where, (text for entry in node.attribute for text in (entry.name, entry.ref_attr_name)))
        place = f'{where}node {index} {node.op_type} ("{node.name}")'
        check_node(node, place, scope)
        for attribute in node.attribute:
            if attribute.HasField("sparse_tensor") or attribute.sparse_tensors:
                raise ModelError(f'{place}: attribute "{attribute.name}" is sparse, which cannot be compiled')
            for tensor in (*attribute.tensors, *([attribute.t] if attribute.HasField("t") else [])):
                check_tensor(scope.onnx, tensor, f'{place}: attribute "{attribute.name}"')
            for graph in graphs_of(attribute):
                _check_graph(graph, f"{place}: {attribute.name}: ", scope)


def check_tensor(onnx: Any, tensor: Any, where: str) -> None:
    """Check type and shape of a tensor, and its number of elements; those in other files are checked when read."""
    dtype = dtype_name(onnx, tensor.data_type)
    need(dtype in FIELD_OF, f"{where} has type {dtype}, which cannot be compiled")
    if len(tensor.dims) > MOST_RANK or any(extent < 0 for extent in tensor.dims):
        extents = ",".join(map(str, tensor.dims[:MOST_RANK]))
        raise ModelError(f"{where} has shape [{extents}]; wanted at most {MOST_RANK} extents from 0; {AGAIN}")
    need(not tensor.HasField("segment"), f"{where} is a part of a tensor alone; {AGAIN}")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return
    elements, present = items(tensor, dtype), {descriptor.name for descriptor, _ in tensor.ListFields()}
    others = present & {*_DATA, "string_data"} - {FIELD_OF[dtype]}
    if tensor.HasField("raw_data"):
        wanted, seen, unit = elements * item_size(dtype), len(tensor.raw_data), "bytes"
        others |= present & {FIELD_OF[dtype]}
    else:
        wanted, seen, unit = elements, len(getattr(tensor, FIELD_OF[dtype])), "elements"
    if seen != wanted or others:
        more = f", and {' and '.join(sorted(others))} besides" if others else ""
        shape = ",".join(map(str, tensor.dims))
        raise ModelError(f"{where} ({dtype} [{shape}]) has {seen} {unit}, wanted {wanted}{more}; {AGAIN}")


def items(tensor: Any, dtype: str) -> int:
    """How many items a file stores for a tensor: two numbers of four bits share one."""
    elements: int = math.prod(tensor.dims)
    return -(-elements // 2) if dtype in FOUR_BITS else elements


def item_size(dtype: str) -> int:
    return int(np.dtype(FOUR_BITS.get(dtype, dtype)).itemsize)


@dataclass
class _Cost:
    """Counts nodes and the bytes that inlining functions adds; ``depth`` is of calls within calls."""

    nodes: int = 0
    copied: int = 0
    depth: int = 0

    def add(self, other: _Cost) -> None:
        self.nodes += other.nodes
        self.copied += other.copied
        self.depth = max(self.depth, other.depth)


@dataclass
class _Costs:
    """Computes what inlining costs without doing it.

    Functions that call others twice, 30 deep, would make a billion nodes of a small file. Here the cost of each one is
    computed once, so the work grows with the file alone. ``open`` has the functions whose cost is being computed: one
    that comes up again calls itself. The depth is checked on the way down, to bound the recursion, and on the way up,
    because a known function is not entered again.
    """

    functions: Mapping[FunctionKey, Any]
    path: Path
    known: dict[FunctionKey, _Cost] = field(default_factory=dict)
    open: list[FunctionKey] = field(default_factory=list)

    def of_nodes(self, nodes: Any) -> _Cost:
        cost = _Cost()
        for node in nodes:
            key = key_of(node)
            cost.add(self._of_function(key) if key in self.functions else _Cost(1))
            for attribute in node.attribute:
                for graph in graphs_of(attribute):
                    cost.add(self.of_nodes(graph.node))
        return cost

    def _of_function(self, key: FunctionKey) -> _Cost:
        if key in self.open:
            names = " calls ".join(f'"{name}"' for _, name, _ in (*self.open[self.open.index(key) :], key))
            raise ModelError(f"{self.path} has a function that calls itself: {names}; {AGAIN}")
        if key not in self.known:
            self.open.append(key)
            self._check_depth(len(self.open))
            cost = self.of_nodes(self.functions[key].node)
            self.open.pop()
            self.known[key] = _Cost(cost.nodes, cost.copied + self.functions[key].ByteSize(), cost.depth + 1)
            self._check_depth(self.known[key].depth)
        return self.known[key]

    def _check_depth(self, depth: int) -> None:
        if depth > DEEPEST_CALL:
            raise ModelError(f"{self.path} has functions that call functions more than {DEEPEST_CALL} deep; {AGAIN}")
