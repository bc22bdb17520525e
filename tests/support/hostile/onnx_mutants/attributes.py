"""Changes of attributes."""

from __future__ import annotations

from typing import Any

import onnx
from onnx import AttributeProto

from support.hostile.onnx_mutants.mutator import BYTES, TEXTS, Mutator, branch, mutation, spoil_tensor


def _attribute(m: Mutator) -> Any:
    nodes = [node for node in m.graph.node if node.attribute]
    return m.rng.choice(m.rng.choice(nodes).attribute)


def _fill(m: Mutator, attribute: Any, kind: int) -> None:
    """With some value of a kind."""
    for name in ("f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "graphs", "sparse_tensor", "tp"):
        attribute.ClearField(name)
    attribute.type = kind
    if kind == AttributeProto.INT:
        attribute.i = m.integer()
    elif kind == AttributeProto.FLOAT:
        attribute.f = m.real()
    elif kind == AttributeProto.STRING:
        attribute.s = m.rng.choice(BYTES) if m.rng.random() < 0.3 else m.rng.choice(TEXTS).encode()
    elif kind == AttributeProto.INTS:
        attribute.ints.extend(m.integers())
    elif kind == AttributeProto.FLOATS:
        attribute.floats.extend(m.real() for _ in range(m.rng.randrange(4)))
    elif kind == AttributeProto.STRINGS:
        attribute.strings.extend(m.rng.choice(TEXTS).encode() for _ in range(m.rng.randrange(4)))
    elif kind == AttributeProto.TENSOR:
        attribute.t.CopyFrom(m.tensor())
        if m.rng.random() < 0.4:
            spoil_tensor(m, attribute.t)
    elif kind == AttributeProto.GRAPH:
        attribute.g.CopyFrom(branch(m))


@mutation(5)
def change_attribute(m: Mutator) -> None:
    attribute = _attribute(m)
    _fill(m, attribute, attribute.type)


@mutation(5)
def change_one_number(m: Mutator) -> None:
    attribute = _attribute(m)
    if attribute.ints and m.rng.random() < 0.8:
        attribute.ints[m.rng.randrange(len(attribute.ints))] = m.integer()
    elif attribute.ints:
        attribute.ints.append(m.integer())
    elif attribute.type == AttributeProto.INT:
        attribute.i += m.rng.choice((-1, 1))
    elif attribute.floats:
        attribute.floats[0] = m.real()


@mutation()
def retype_attribute(m: Mutator) -> None:
    attribute = _attribute(m)
    kinds = [k for k in AttributeProto.AttributeType.values() if k != attribute.type]
    if m.rng.random() < 0.5:
        attribute.type = m.rng.choice(kinds)  # and the value stays where it was
    else:
        _fill(m, attribute, m.rng.choice(kinds))


@mutation(2)
def remove_attribute(m: Mutator) -> None:
    node = m.rng.choice([node for node in m.graph.node if node.attribute])
    del node.attribute[m.rng.randrange(len(node.attribute))]


@mutation(5)
def add_attribute(m: Mutator) -> None:
    """One that the operator has, or has not."""
    node = m.node()
    schema = onnx.defs.get_schema(node.op_type, 21, node.domain) if m.rng.random() < 0.9 else None
    attribute = node.attribute.add()
    if schema is not None and schema.attributes:
        name, known = m.rng.choice(sorted(schema.attributes.items()))
        attribute.name = name
        kind = int(known.type)
        values = [entry for entry in node.attribute if entry.name == name]
        if len(values) > 1 and m.rng.random() < 0.9:
            node.attribute.remove(values[0])
            attribute = node.attribute[-1]
        _fill(m, attribute, kind if m.rng.random() < 0.9 else m.rng.choice(AttributeProto.AttributeType.values()))
    else:
        attribute.name = m.rng.choice(("axis", "unheard_of", "", "to", "body"))
        _fill(m, attribute, m.rng.choice(AttributeProto.AttributeType.values()))


@mutation()
def refer_attribute(m: Mutator) -> None:
    attribute = _attribute(m)
    attribute.ref_attr_name = m.rng.choice(("alpha", attribute.name, "x"))
    if m.rng.random() < 0.5:
        for name in ("f", "i", "s", "t", "g", "floats", "ints", "strings"):
            attribute.ClearField(name)
