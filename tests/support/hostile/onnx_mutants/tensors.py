"""Changes of tensors and of what a graph says of its values."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from support.hostile.onnx_mutants.mutator import KINDS, Mutator, mutation, spoil_tensor


@mutation()
def spoil_initialiser(m: Mutator) -> None:
    spoil_tensor(m, m.rng.choice(m.graph.initializer))


@mutation(5)
def other_values(m: Mutator) -> None:
    """Scales of 0, axes far away, shapes of nothing: sound tensors with values that no exporter writes."""
    tensor = m.rng.choice(m.graph.initializer)
    array = np.array(numpy_helper.to_array(tensor))
    if array.size == 0 or array.dtype.kind not in "iufb":
        return
    kind = array.dtype
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        if m.rng.random() < 0.3:
            flat[:] = _number(m, kind)
        else:
            flat[m.rng.randrange(flat.size)] = _number(m, kind)
    tensor.CopyFrom(numpy_helper.from_array(flat.reshape(array.shape).astype(kind), tensor.name))


def _number(m: Mutator, kind: Any) -> Any:
    if kind.kind == "f":
        return np.asarray(m.real()).astype(kind)
    if kind.kind == "b":
        return m.rng.random() < 0.5
    info = np.iinfo(kind)
    return max(int(info.min), min(int(info.max), m.integer()))


@mutation(3)
def other_shape(m: Mutator) -> None:
    """The initialiser's values in another shape."""
    tensor = m.rng.choice(m.graph.initializer)
    array = numpy_helper.to_array(tensor)
    shape = m.rng.choice(([array.size], [1, array.size], [array.size, 1, 1], [array.size, 0], []))
    tensor.CopyFrom(numpy_helper.from_array(np.resize(array, shape), tensor.name))


@mutation(3)
def other_type(m: Mutator) -> None:
    """The initialiser's values in another type that can be compiled."""
    tensor = m.rng.choice(m.graph.initializer)
    kind = m.rng.choice(("float32", "float16", "float64", "int8", "uint8", "int16", "uint16", "int32", "int64", "bool"))
    with np.errstate(all="ignore"):
        array = np.asarray(numpy_helper.to_array(tensor)).astype(kind)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


@mutation()
def spoil_names(m: Mutator) -> None:
    old, new = m.name(), m.rng.choice(("", m.name(), "a\nb", "x" * 2000, "\0", "é", "../../x", "(inner 0)/a"))
    for node in m.graph.node:
        node.input[:] = [new if name == old else name for name in node.input]
        if m.rng.random() < 0.7:
            node.output[:] = [new if name == old else name for name in node.output]
    for entry in (*m.graph.initializer, *m.graph.input, *m.graph.output):
        if entry.name == old and m.rng.random() < 0.9:
            entry.name = new


@mutation()
def sparse(m: Mutator) -> None:
    entry = m.graph.sparse_initializer.add()
    entry.values.CopyFrom(m.tensor("sparse"))
    entry.indices.CopyFrom(m.tensor("where"))
    entry.dims.extend(m.integers())


def _value(m: Mutator) -> Any:
    return m.rng.choice([*m.graph.input, *m.graph.output, *m.graph.value_info])


@mutation(3)
def change_extent(m: Mutator) -> None:
    dims = _value(m).type.tensor_type.shape.dim
    dim = m.rng.choice(dims)
    if m.rng.random() < 0.2:
        dim.dim_param = m.rng.choice(("N", "", "a\nb"))
    elif m.rng.random() < 0.1:
        dim.Clear()
    else:
        dim.dim_value = m.integer()


@mutation()
def change_rank(m: Mutator) -> None:
    shape = _value(m).type.tensor_type.shape
    if shape.dim and m.rng.random() < 0.5:
        del shape.dim[m.rng.randrange(len(shape.dim)) :]
    else:
        for _ in range(m.rng.choice((1, 1, 4, 40))):
            shape.dim.add().dim_value = m.rng.choice((1, 1, 2, m.integer()))


@mutation()
def change_type(m: Mutator) -> None:
    value = _value(m)
    which = m.rng.randrange(8)
    if which <= 3:
        value.type.tensor_type.elem_type = m.rng.choice(KINDS)
    elif which == 4:
        value.type.tensor_type.ClearField("shape")
    elif which == 5:
        value.ClearField("type")
    elif which == 6:
        inner = helper.make_tensor_type_proto(1, [2])
        made = m.rng.choice((helper.make_sequence_type_proto, helper.make_optional_type_proto))(inner)
        value.type.CopyFrom(made)
    else:
        value.type.map_type.key_type = 7


@mutation(3)
def real_type(m: Mutator) -> None:
    """An input of another type that can be compiled."""
    m.rng.choice(m.graph.input).type.tensor_type.elem_type = m.rng.choice((1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13))


@mutation()
def note_shape(m: Mutator) -> None:
    name = m.rng.choice([name for node in m.graph.node for name in node.output])
    m.graph.value_info.append(helper.make_tensor_value_info(name, m.rng.choice((1, 3, 7, 9)), m.integers()))


@mutation()
def change_ends(m: Mutator) -> None:
    which = m.rng.randrange(6)
    ends = m.rng.choice((m.graph.input, m.graph.output))
    if which == 0:
        ends.add().CopyFrom(m.rng.choice(ends))
    elif which == 1:
        del ends[m.rng.randrange(len(ends))]
    elif which == 2:
        ends.add().CopyFrom(helper.make_tensor_value_info(m.name(), m.rng.choice(KINDS[:22]), [1, 2]))
    elif which == 3:
        m.graph.output.add().name = m.name()
    elif which == 4:
        m.rng.choice(ends).name = m.rng.choice(("", "nowhere", m.name()))
    else:
        m.graph.input.add().CopyFrom(helper.make_tensor_value_info(m.graph.initializer[0].name, 1, [3]))
