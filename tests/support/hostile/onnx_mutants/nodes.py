"""Changes of nodes: their operands, operators and order."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from support.hostile.onnx_mutants.mutator import OPERATORS, Mutator, mutation


@mutation(2)
def drop_input(m: Mutator) -> None:
    node = m.node()
    node.input[m.rng.randrange(len(node.input))] = ""


@mutation()
def drop_all_inputs(m: Mutator) -> None:
    node = m.node()
    if m.rng.random() < 0.5:
        del node.input[:]
    else:
        node.input[:] = [""] * len(node.input)


@mutation()
def fewer_inputs(m: Mutator) -> None:
    node = m.node()
    del node.input[m.rng.randrange(len(node.input)) :]


@mutation()
def more_inputs(m: Mutator) -> None:
    node = m.node()
    for _ in range(m.rng.choice((1, 1, 2, 5))):
        node.input.append(m.rng.choice((m.name(), "", m.constant())))


@mutation(3)
def another_input(m: Mutator) -> None:
    node = m.node()
    node.input[m.rng.randrange(len(node.input))] = m.name()


@mutation(4)
def constant_input(m: Mutator) -> None:
    node = m.node()
    node.input[m.rng.randrange(len(node.input))] = m.constant()


@mutation(2)
def swap_inputs(m: Mutator) -> None:
    node = m.node()
    order = list(node.input)
    m.rng.shuffle(order)
    node.input[:] = order


@mutation()
def change_outputs(m: Mutator) -> None:
    node = m.node()
    which = m.rng.randrange(4)
    if which == 0:
        node.output.append(f"more{m.rng.randrange(99)}")
    elif which == 1:
        node.output[m.rng.randrange(len(node.output))] = ""
    elif which == 2:
        node.output[m.rng.randrange(len(node.output))] = m.name()
    else:
        del node.output[m.rng.randrange(len(node.output)) :]


@mutation(2)
def another_operator(m: Mutator) -> None:
    m.node().op_type = m.rng.choice(OPERATORS)


@mutation()
def another_domain(m: Mutator) -> None:
    node = m.node()
    node.domain = m.rng.choice(("", "ai.onnx", "com.microsoft", "ai.onnx.ml", "mine", "ai.onnx.preview.training", "\n"))
    if m.rng.random() < 0.5:
        node.op_type = m.rng.choice(
            ("QGemm", "QLinearAdd", "QLinearConcat", "FusedConv", "Attention", "SkipLayerNormalization")
        )
    if m.rng.random() < 0.5:
        m.model.opset_import.append(helper.make_opsetid(node.domain, m.rng.choice((1, 2, 13, 21))))


@mutation()
def move_node(m: Mutator) -> None:
    nodes = list(m.graph.node)
    node = nodes.pop(m.rng.randrange(len(nodes)))
    nodes.insert(m.rng.randrange(len(nodes) + 1), node)
    if m.rng.random() < 0.3:
        nodes.pop(m.rng.randrange(len(nodes)))
    elif m.rng.random() < 0.3:
        nodes.append(node)
    del m.graph.node[:]
    m.graph.node.extend(nodes)


@mutation(5)
def graft(m: Mutator) -> None:
    """A node of another model behind this one, with its constants, on its own inputs or on tensors of this one."""
    other, tag = m.rng.choice(m.others), f"graft{m.rng.randrange(9999)}/"
    node = onnx.NodeProto()
    node.CopyFrom(m.rng.choice(other.graph.node))
    constants = {tensor.name: tensor for tensor in other.graph.initializer}
    given = {value.name: value for value in other.graph.input}
    for i, name in enumerate(node.input):
        if name in constants:
            m.graph.initializer.append(constants[name])
            m.graph.initializer[-1].name = node.input[i] = tag + name
        elif name in given and m.rng.random() < 0.8:
            m.graph.input.append(given[name])
            m.graph.input[-1].name = node.input[i] = tag + name
        elif name:
            node.input[i] = m.name()
    for i in range(len(node.output)):
        node.output[i] = f"{tag}{i}"
    m.graph.node.append(node)
    if node.domain not in {entry.domain for entry in m.model.opset_import}:
        m.model.opset_import.append(helper.make_opsetid(node.domain, 1))
    m.graph.output.append(helper.make_value_info(node.output[0], helper.make_tensor_type_proto(1, None)))


@mutation(2)
def bake_input(m: Mutator) -> None:
    """An input becomes a constant, so that what reads it is computed at import."""
    position = m.rng.randrange(len(m.graph.input))
    value = m.graph.input[position]
    kind = value.type.tensor_type
    shape = [min(dim.dim_value, 16) for dim in kind.shape.dim]
    dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
    array = np.asarray([m.rng.choice((0, 1, 2, 3, -1, 100)) for _ in range(int(np.prod(shape)))]).astype(dtype)
    m.graph.initializer.append(numpy_helper.from_array(array.reshape(shape), value.name))
    if m.rng.random() < 0.8:
        del m.graph.input[position]


@mutation(2)
def bake_all(m: Mutator) -> None:
    for _ in range(len(m.graph.input)):
        bake_input(m)
