"""Changes of whole models: bodies, functions, versions, quantisation."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from support.hostile.onnx_mutants.mutator import Mutator, branch, mutation


@mutation(2)
def wrap_in_if(m: Mutator) -> None:
    position = m.rng.randrange(len(m.graph.node))
    old = m.graph.node[position]
    condition = m.constant()
    if m.rng.random() < 0.7:
        flag = np.asarray(m.rng.random() < 0.5)
        m.graph.initializer[-1].CopyFrom(numpy_helper.from_array(flag, condition))
    inner = branch(m)
    inner.node[0].CopyFrom(old)
    inner.node[0].output[:] = [f"inner{i}" if name else "" for i, name in enumerate(old.output)]
    inner.output[0].name = inner.node[0].output[0]
    other = branch(m) if m.rng.random() < 0.6 else inner
    wrapped = helper.make_node("If", [condition], [old.output[0]], then_branch=inner, else_branch=other)
    for _ in range(m.rng.choice((0, 0, 0, 1, 3, 20))):
        copy = onnx.GraphProto()
        deeper = onnx.NodeProto()
        deeper.CopyFrom(wrapped)
        deeper.output[0] = "deep"
        copy.CopyFrom(helper.make_graph([deeper], "deeper", [], [helper.make_value_info("deep", onnx.TypeProto())]))
        wrapped = helper.make_node("If", [condition], [old.output[0]], then_branch=copy, else_branch=inner)
    m.graph.node[position].CopyFrom(wrapped)


@mutation()
def wrap_in_loop(m: Mutator) -> None:
    position = m.rng.randrange(len(m.graph.node))
    old = m.graph.node[position]
    op, inputs = m.rng.choice(
        (("Loop", [m.constant(), ""]), ("Scan", list(old.input)), ("SequenceMap", list(old.input)))
    )
    wrapped = helper.make_node(op, inputs, list(old.output), body=branch(m))
    if op == "Scan":
        wrapped.attribute.append(helper.make_attribute("num_scan_inputs", m.integer()))
    m.graph.node[position].CopyFrom(wrapped)


@mutation(2)
def outline(m: Mutator) -> None:
    """A node becomes a call of a function of the file's own."""
    position = m.rng.randrange(len(m.graph.node))
    old = m.graph.node[position]
    inputs = [f"i{k}" for k in range(len(old.input))]
    body = onnx.NodeProto()
    body.CopyFrom(old)
    body.input[:] = inputs
    opsets = list(m.model.opset_import)
    domain = m.rng.choice(("mine", "mine", "mine", "", "com.microsoft"))
    name = m.rng.choice(("Own", "Own", "Own", "Relu", old.op_type))
    nodes = [body]
    if m.rng.random() < 0.15:
        nodes = [helper.make_node(name, inputs, list(old.output), domain=domain)]  # which calls itself
    attributes: list[str] = []
    for attribute in body.attribute:
        if m.rng.random() < 0.3:
            attribute.ref_attr_name = attribute.name
            attributes.append(attribute.name)
    opsets.append(helper.make_opsetid(domain, 1))
    m.model.functions.append(helper.make_function(domain, name, inputs, list(old.output), nodes, opsets, attributes))
    given = list(old.attribute) if m.rng.random() < 0.7 else []
    call = helper.make_node(name, list(old.input), list(old.output), domain=domain)
    call.attribute.extend(given)
    if m.rng.random() < 0.2:
        del call.input[m.rng.randrange(len(call.input)) :]
    m.graph.node[position].CopyFrom(call)
    if domain not in {entry.domain for entry in m.model.opset_import} and m.rng.random() < 0.9:
        m.model.opset_import.append(helper.make_opsetid(domain, 1))


@mutation()
def nest_functions(m: Mutator) -> None:
    """Functions that call functions: few bytes, many nodes."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("deep", 1)]
    levels, calls = m.rng.choice(((2, 2), (3, 10), (9, 10), (60, 2), (200, 1), (4, 30)))
    for level in range(levels):
        op, domain = (f"F{level - 1}", "deep") if level else (m.rng.choice(("Relu", "Neg", "F0")), "")
        body = [helper.make_node(op, [f"t{k}"], [f"t{k + 1}"], domain=domain) for k in range(calls)]
        m.model.functions.append(helper.make_function("deep", f"F{level}", ["t0"], [f"t{calls}"], body, opsets))
    m.graph.node.append(helper.make_node(f"F{levels - 1}", [m.name()], ["very deep"], domain="deep"))
    m.graph.output.append(helper.make_tensor_value_info("very deep", 1, None))
    m.model.opset_import.append(helper.make_opsetid("deep", 1))


@mutation()
def spoil_function(m: Mutator) -> None:
    function = m.rng.choice(m.model.functions)
    which = m.rng.randrange(6)
    if which == 0:
        function.input.append(m.rng.choice(function.input or ["i0"]))
    elif which == 1:
        del function.output[:]
    elif which == 2:
        function.opset_import[0].version = m.rng.choice((0, 5, 13, 99))
    elif which == 3:
        m.model.functions.append(function)
    elif which == 4:
        del function.node[:]
    else:
        function.output.append("nowhere")


@mutation(2)
def other_opset(m: Mutator) -> None:
    entry = m.rng.choice(m.model.opset_import)
    entry.version = m.rng.choice((0, -1, 1, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 99, 2**40))
    if m.rng.random() < 0.1:
        m.model.opset_import.append(helper.make_opsetid(m.rng.choice(("", "ai.onnx", "x")), 18))


@mutation()
def other_versions(m: Mutator) -> None:
    if m.rng.random() < 0.5:
        m.model.ir_version = m.rng.choice((0, -1, 3, 4, 7, 8, 10, 11, 12, 13, 99))
    else:
        m.model.graph.quantization_annotation.add().tensor_name = m.name()
        m.model.training_info.add()
        m.model.metadata_props.add(key="x" * 100, value="\0")


@mutation(4)
def wrap_in_quantisation(m: Mutator) -> None:
    """A node's result is quantised, with parameters that fit or do not."""
    old = m.rng.choice([name for node in m.graph.node for name in node.output if name])
    scale, zero = m.constant(), m.constant()
    if m.rng.random() < 0.7:
        kind = m.rng.choice(("int8", "uint8", "int16", "int32"))
        count = m.rng.choice((None, 1, 2, 3, 4))
        shape = () if count is None else (count,)
        m.graph.initializer[-2].CopyFrom(numpy_helper.from_array(np.full(shape, 0.1, np.float32), scale))
        m.graph.initializer[-1].CopyFrom(numpy_helper.from_array(np.full(shape, 3, kind), zero))
    q = helper.make_node("QuantizeLinear", [old, scale, zero], [f"{old}_q"])
    d = helper.make_node("DequantizeLinear", [f"{old}_q", scale, zero], [f"{old}_d"])
    if m.rng.random() < 0.5:
        for node in (q, d):
            node.attribute.append(helper.make_attribute(m.rng.choice(("axis", "block_size", "saturate")), m.integer()))
    m.graph.node.extend((q, d))
    m.graph.output.append(helper.make_tensor_value_info(f"{old}_d", 1, None))
