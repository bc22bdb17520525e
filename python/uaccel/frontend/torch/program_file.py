"""The serialised program of a ``.pt2`` file as plain data: who computes what of what, with no type of PyTorch's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from uaccel.frontend.torch.serialised import (
    TensorMeta,
    entries,
    fields,
    integer,
    items,
    name,
    need,
    parsed,
    path,
    symbolic,
    tagged,
    tensor_meta,
    text,
)

MOST_NODES: Final = 50_000
_SCHEMA: Final = 8
_DEEPEST: Final = 8
_TENSORS: Final = {"parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name"}
_CHANGES: Final = {
    "buffer_mutation": "buffer_name",
    "parameter_mutation": "parameter_name",
    "user_input_mutation": "user_input_name",
}

Value = tuple[str, Any]
"""What an argument is, ``as_tensor``, and what it says, not yet checked."""


@dataclass(frozen=True)
class Argument:
    """``kind``: 1 for one by its place, 2 for one by its name, 0 where the file does not say."""

    name: str
    kind: int
    value: Value


@dataclass(frozen=True)
class FileNode:
    """``results``: their names, None for one that nobody wants; ``several``: whether they stand in a list."""

    target: str
    inputs: tuple[Argument, ...]
    results: tuple[str | None, ...]
    several: bool
    name: str

    @property
    def lines(self) -> int:
        """How many operators PyTorch shows for it: taking a result out of a list is one more."""
        return 1 + (len(self.results) if self.several else 0)


@dataclass(frozen=True)
class FileGraph:
    """``tensors``: what the file says of each, which may be wrong. ``numbers``: names of extents."""

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    nodes: tuple[FileNode, ...]
    tensors: dict[str, TensorMeta]
    numbers: frozenset[str]

    def uses(self, prefix: str) -> bool:
        inner = (argument.value for node in self.nodes for argument in node.inputs)
        return any(node.target.startswith(prefix) for node in self.nodes) or any(
            tag == "as_graph" and graph.uses(prefix) for tag, graph in inner
        )


@dataclass(frozen=True)
class FileInput:
    """``name`` of the node; ``stored``: the tensor in the file that it is, None where the caller gives it."""

    name: str
    stored: str | None
    value: Value


@dataclass(frozen=True)
class FileProgram:
    """``changed``: the names of what the program writes to. ``ranges``: from, to, None where that is open."""

    graph: FileGraph
    inputs: tuple[FileInput, ...]
    outputs: tuple[Value, ...]
    changed: tuple[str, ...]
    ranges: dict[str, tuple[int | None, int | None]]
    conditions: tuple[str, ...] = ()

    def uses(self, library: str) -> bool:
        """Whether it calls operators of ``torch.ops.<library>``."""
        return self.graph.uses(f"torch.ops.{library}.")


def program_file(content: bytes | memoryview) -> FileProgram:
    """Checked; MisfitError says what is wrong with it."""
    whole = parsed(content, "program")
    module, ranges, version, conditions = fields(
        whole,
        "program",
        *("graph_module", "range_constraints", "schema_version", "guards_code?"),
        *("verifiers?", "torch_version?", "opset_version?"),
    )[:4]
    major, _ = fields(version, "schema version", "major", "minor")
    need(major == _SCHEMA, f"program has the schema {str(major)[:20]}, wanted {_SCHEMA}; export it with PyTorch 2.13")
    body, signature = fields(
        module, "module", "graph", "signature", "module_call_graph?", "metadata?", "treespec_namedtuple_fields?"
    )[:2]
    given, results = fields(signature, "signature", "input_specs", "output_specs")
    specs = items(results, "output", _output)
    changed = tuple(target for target, _ in specs if target)
    return FileProgram(
        graph=_graph(body, "graph", 0),
        inputs=items(given, "input", _input),
        outputs=tuple(value for target, value in specs if not target),
        changed=changed,
        ranges=entries(ranges, "range of", _range),
        conditions=items(conditions or [], "condition", text),
    )


def _input(value: Any, what: str) -> FileInput:
    kind, content = tagged(value, what)
    if kind in _TENSORS:
        argument, target = fields(content, what, "arg", _TENSORS[kind], "persistent?")[:2]
        (tensor,) = fields(argument, what, "name")
        return FileInput(name(tensor, what), path(target, what), ("as_tensor", argument))
    if kind == "constant_input":
        return FileInput("", None, tagged(fields(content, what, "name", "value")[1], what))
    need(kind == "user_input", f"{what} is a {kind[:40]!r}; only tensors and numbers can be")
    tag, inner = tagged(fields(content, what, "arg")[0], what)
    return FileInput(name(fields(inner, what, "name")[0], what) if tag == "as_tensor" else "", None, (tag, inner))


def _output(value: Any, what: str) -> tuple[str, Value]:
    """What it is written to, empty for a result."""
    kind, content = tagged(value, what)
    if kind in _CHANGES:
        _, target = fields(content, what, "arg", _CHANGES[kind])
        prefix = "input " if kind == "user_input_mutation" else ""
        return prefix + path(target, what), ("", None)
    need(kind == "user_output", f"{what} is a {kind[:40]!r}; only results can be")
    return "", tagged(fields(content, what, "arg")[0], what)


def _range(value: Any, what: str) -> tuple[int | None, int | None]:
    low, high = (None if bound is None else integer(bound, what) for bound in fields(value, what, "min_val", "max_val"))
    return low, high


def _graph(value: Any, what: str, depth: int) -> FileGraph:
    need(depth < _DEEPEST, f"{what} nests deeper than {_DEEPEST}")
    given, results, nodes, tensors, numbers, flags = fields(
        value,
        what,
        *("inputs", "outputs", "nodes", "tensor_values", "sym_int_values", "sym_bool_values"),
        *("sym_float_values?", "is_single_tensor_return?", "custom_obj_values?"),
    )[:6]
    need(not value.get("custom_obj_values"), f"{what} has objects that are no tensors")
    need(isinstance(nodes, list) and len(nodes) <= MOST_NODES, f"{what} has more than {MOST_NODES} operators")
    plain = {"as_int", "as_bool", "as_float"}
    named: set[str] = set()
    for group in (numbers, flags, value.get("sym_float_values") or {}):
        for key, (tag, content) in entries(group, f"{what}: number", tagged).items():
            if tag not in plain:
                symbolic(tag, content, f"{what}: number {key[:40]!r}")
            named.add(name(key, f"{what}: number"))
    return FileGraph(
        items(given, f"{what}: input", tagged),
        items(results, f"{what}: output", tagged),
        items(nodes, f"{what}: operator", lambda node, where: _node(node, where, depth)),
        {name(key, what): meta for key, meta in entries(tensors, f"{what}: tensor", tensor_meta).items()},
        frozenset(named),
    )


def _node(value: Any, what: str, depth: int) -> FileNode:
    target, given, results, _, single, called = fields(
        value, what, "target", "inputs", "outputs", "metadata?", "is_hop_single_tensor_return?", "name?"
    )
    arguments = items(given, f"{what}: argument", lambda one, where: _argument(one, where, depth))
    given_names = [argument.name for argument in arguments if argument.name]
    need(len(set(given_names)) == len(given_names), f"{what} has two arguments of one name")
    made = items(results, f"{what}: result", tagged)
    names = tuple(found for value in made for found in _results(value, what))
    several = len(made) != 1 or made[0][0] == "as_tensors" or single is False
    first = next((found for found in names if found), "unnamed")
    need(
        re.fullmatch(r"[\w.]{1,200}", text(target, what), re.ASCII),
        f"{what} is {str(target)[:40]!r}, no operator's name",
    )
    return FileNode(target, arguments, names, several, name(called, what) if called else first)


def _results(value: Value, what: str) -> list[str | None]:
    """The names of what an operator makes."""
    tag, content = value
    if tag == "as_none":
        return [None]
    if tag == "as_tensor":
        return [name(fields(content, what, "name")[0], what)]
    if tag == "as_tensors":
        return list(items(content, what, lambda one, where: name(fields(one, where, "name")[0], where)))
    need(tag in ("as_sym_int", "as_sym_float", "as_sym_bool"), f"{what} makes a {tag[:40]!r}")
    return [name(fields(content, what, "as_name")[0], what)]


def _argument(value: Any, what: str, depth: int) -> Argument:
    called, content, kind = fields(value, what, "name", "arg", "kind?")
    tag, inner = tagged(content, what)
    if tag == "as_graph":
        inner = _graph(fields(inner, what, "name", "graph")[1], what, depth + 1)
    kind = integer(kind or 0, what)
    need(kind in (0, 1, 2), f"{what} is of the unknown kind {kind}")
    return Argument(text(called, what), kind, (tag, inner))
