"""A node against the definition of its operator: what native code takes for granted is checked before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from uaccel.errors import ModelError
from uaccel.frontend.onnx.graph import STANDARD

FunctionKey = tuple[str, str, str]
"""Domain, name and overload of a function of the file's own."""

AGAIN: Final = "export the model again"
MOST_OPERANDS: Final = 4096
LARGEST_NUMBER: Final = (1 << 31) - 1
POSITIVE: Final = ("blocksize", "dilations", "group", "kernel_shape", "num_groups", "num_outputs", "size", "strides")
"""Attributes that operators divide by, or count with."""
ANY_NUMBER: Final = ("Constant",)
"""Operators whose integers are data."""
_BESIDE: Final = ("name", "doc_string", "type", "ref_attr_name")
"""Fields of an attribute that are not its value."""
_LISTS: Final = ("floats", "ints", "strings", "tensors", "graphs", "sparse_tensors", "type_protos")
_FIELDS: Final = ("f", "i", "s", "t", "g", *_LISTS[:5], "tp", "type_protos", "sparse_tensor", "sparse_tensors")
_KINDS: Final = ("FLOAT", "INT", "STRING", "TENSOR", "GRAPH", "FLOATS", "INTS", "STRINGS", "TENSORS", "GRAPHS")
_OTHER_KINDS: Final = ("TYPE_PROTO", "TYPE_PROTOS", "SPARSE_TENSOR", "SPARSE_TENSORS")
FIELD_OF: Final = dict(zip((*_KINDS, *_OTHER_KINDS), _FIELDS, strict=True))
"""Where an attribute of a kind keeps its value."""


_TERM: Final = r"[A-Za-z]*(\.\.\.[A-Za-z]*)?"
EQUATION: Final = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")
"""Of an Einsum, without its spaces. ONNX's own inference of shapes never ends on what is no letter."""


@dataclass(frozen=True)
class Scope:
    """What the nodes of a graph or of a function may use; ``parameters`` are the function's attributes."""

    onnx: Any
    opsets: Mapping[str, int]
    functions: Mapping[FunctionKey, Any] = field(default_factory=dict)
    parameters: Container[str] = ()


def key_of(node: Any) -> FunctionKey:
    """Of the function that a node would call."""
    return standard(node.domain), node.op_type, node.overload


def standard(domain: str) -> str:
    """One name for the domain that has two."""
    return "" if domain in STANDARD else domain


def check_node(node: Any, where: str, scope: Scope) -> None:
    """ModelError where the node is none of its operator's; of operators that nobody defines only the attributes."""
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
            if len(given) > len(known):
                raise ModelError(f"{where} has {len(given)} {what}, its function takes {len(known)}; {AGAIN}")
        return
    schema = _schema(node, scope)
    if schema is not None:
        _check_operands(where, "input", node.input, schema.inputs, schema.min_input, schema.max_input)
        _check_operands(where, "output", node.output, schema.outputs, schema.min_output, schema.max_output)
        _check_kinds(node, where, schema, scope.onnx)


def _schema(node: Any, scope: Scope) -> Any | None:
    version = scope.opsets.get(standard(node.domain))
    if version is None or not 0 < version <= LARGEST_NUMBER:
        return None  # the file does not say which, or none that there is: ONNX's own check refuses it
    try:
        return scope.onnx.defs.get_schema(node.op_type, version, standard(node.domain))
    except scope.onnx.defs.SchemaError:
        return None


def _check_operands(where: str, what: str, names: Sequence[str], formals: Any, fewest: int, most: int) -> None:
    """Their number, and that none is left out but what is optional."""
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
    given = {attribute.name: attribute for attribute in node.attribute}
    for name, known in schema.attributes.items():
        if name in given:
            wanted, seen = known.type.name, onnx.AttributeProto.AttributeType.Name(given[name].type)
            if seen != wanted:
                raise ModelError(f'{where}: attribute "{name}" is of kind {seen}, wanted {wanted}; {AGAIN}')
        elif known.required:
            raise ModelError(f'{where} lacks attribute "{name}", which it needs; {AGAIN}')


def _check_attribute(attribute: Any, where: str, scope: Scope) -> None:
    """One value, of the kind that it says; or a reference, in a function that has such an attribute."""
    seen = {descriptor.name for descriptor, _ in attribute.ListFields()} - set(_BESIDE)
    if attribute.ref_attr_name:
        if attribute.ref_attr_name not in scope.parameters:
            raise ModelError(
                f'{where}: attribute "{attribute.name}" refers to attribute "{attribute.ref_attr_name}" of a function, '
                f"and there is none; {AGAIN}"
            )
        if seen:
            raise ModelError(f'{where}: attribute "{attribute.name}" has a value and refers to another; {AGAIN}')
        return
    kinds = scope.onnx.AttributeProto.AttributeType
    kind = kinds.Name(attribute.type) if attribute.type in kinds.values() else str(attribute.type)
    wanted = FIELD_OF.get(kind, "")
    if not wanted or seen - {wanted} or (not seen and wanted not in _LISTS):
        raise ModelError(f'{where}: attribute "{attribute.name}" of kind {kind} has no value of that kind; {AGAIN}')


def _check_equation(attribute: Any, where: str) -> None:
    text = attribute.s.decode("latin-1")
    if not attribute.ref_attr_name and not EQUATION.fullmatch(text.replace(" ", "")):
        raise ModelError(f'{where}: attribute "equation" is {text[:80]!r}, wanted letters, commas, "..." and one "->"')


def _check_numbers(attribute: Any, where: str) -> None:
    """None of them makes native code divide by zero or overflow."""
    least = 1 if attribute.name in POSITIVE else -LARGEST_NUMBER
    for number in (*attribute.ints, *([attribute.i] if attribute.HasField("i") else [])):
        if not least <= number <= LARGEST_NUMBER:
            raise ModelError(
                f'{where}: attribute "{attribute.name}" holds {number}, wanted numbers from {least} to {LARGEST_NUMBER}'
            )
