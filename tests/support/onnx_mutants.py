"""ONNX models that are wrong by structure: each differs from a sound one by a few hostile changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, TensorProto, helper, numpy_helper

Model = Any
Mutation = Callable[["Mutator"], None]
MUTATIONS: list[Mutation] = []
WEIGHTS: list[int] = []
"""How often each is made: those that leave a file that is read to its end more often than the others."""

INTEGERS = (0, 1, -1, 2, -2, 3, 5, 7, 16, 255, 4096, 65536, 2**31 - 1, 2**31, -(2**31), 2**40, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-45, 1e38, -1e38, float("inf"), float("-inf"), float("nan"))
TEXTS = (
    "",
    "NOTSET",
    "SAME_UPPER",
    "VALID",
    "linear",
    "nearest",
    "constant",
    "wrap",
    "x" * 300,
    "a\nb\x1b[0m",
    "é",
    '"',
)
BYTES = (b"\xff\xfe", b"\0", b"ij,jk->ik", b"...a,a...->", b"a,b,c,d->abcd")
UNFIT = (
    NotImplementedError,
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    OverflowError,
    onnx.defs.SchemaError,
    DecodeError,
)
"""What comes of a change that does not go with a model."""
KINDS = (*range(27), 99, -1, 2**31 - 1)
OPERATORS = sorted({schema.name for schema in onnx.defs.get_all_schemas()})


def mutation(weight: int = 1) -> Callable[[Mutation], Mutation]:
    def add(function: Mutation) -> Mutation:
        MUTATIONS.append(function)
        WEIGHTS.append(weight)
        return function

    return add


class Mutator:
    """A copy of a model under change; ``others`` lend their nodes."""

    def __init__(self, model: Model, rng: random.Random, others: Sequence[Model]) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.rng = rng
        self.others = others

    @property
    def graph(self) -> Any:
        return self.model.graph

    def node(self) -> Any:
        """Of the graph, or now and then of a subgraph or function."""
        pools = [self.graph.node]
        pools += [function.node for function in self.model.functions]
        pools += [a.g.node for node in self.graph.node for a in node.attribute if a.HasField("g")]
        pools = [pool for pool in pools if pool]
        if not pools:
            return self.graph.node.add(op_type="Relu", input=["x"], output=["y"])
        return self.rng.choice(self.rng.choice(pools))

    def names(self) -> list[str]:
        found = [tensor.name for tensor in self.graph.initializer] + [value.name for value in self.graph.input]
        return found + [name for node in self.graph.node for name in node.output] or ["x"]

    def name(self) -> str:
        return self.rng.choice(self.names())

    def integer(self) -> int:
        rng = self.rng
        return rng.choice(INTEGERS) if rng.random() < 0.5 else rng.randint(-4, 12)

    def real(self) -> float:
        return self.rng.choice(FLOATS) if self.rng.random() < 0.7 else self.rng.uniform(-10, 10)

    def integers(self) -> list[int]:
        return [self.integer() for _ in range(self.rng.choice((0, 1, 1, 2, 3, 4, 4, 8)))]

    def array(self) -> Any:
        """A tensor of few elements."""
        rng = self.rng
        kind = rng.choice(
            ("float32", "float16", "float64", "int8", "uint8", "int16", "int32", "int64", "uint64", "bool")
        )
        shape = [rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(rng.choice((0, 0, 1, 1, 2, 3, 4)))]
        if kind.startswith("float"):
            values = [self.real() for _ in range(int(np.prod(shape)))]
        else:
            values = [self.integer() for _ in range(int(np.prod(shape)))]
        with np.errstate(all="ignore"):
            whole = np.asarray(values, np.float64 if kind.startswith("float") else object)
            wrapped = whole if kind.startswith("float") else np.asarray([int(v) & 127 for v in values])
            if kind in ("int64", "int32") and rng.random() < 0.6:
                wrapped = np.asarray([v if abs(v) < 2**31 else v % 2**31 for v in map(int, values)], np.int64)
            return wrapped.astype(kind).reshape(shape)

    def tensor(self, name: str = "") -> Any:
        return numpy_helper.from_array(np.asarray(self.array()), name)

    def constant(self) -> str:
        """A new initialiser's name."""
        name = f"new{len(self.graph.initializer)}_{self.rng.randrange(1000)}"
        self.graph.initializer.append(self.tensor(name))
        return name


def mutant(model: Model, seed: int, others: Sequence[Model] = ()) -> bytes:
    """The bytes of a model with one to four changes, the same for the same seed."""
    rng = random.Random(seed)
    mutator = Mutator(model, rng, others)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3))):
        (change,) = rng.choices(MUTATIONS, WEIGHTS)
        try:
            change(mutator)
        except UNFIT:
            continue
    data = bytearray(mutator.model.SerializeToString())
    if rng.random() < 0.04:
        for _ in range(rng.choice((1, 2, 8))):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(data)


# ---------------------------------------------------------------------------------------------------------- nodes


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


# ----------------------------------------------------------------------------------------------------- attributes


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
            _spoil_tensor(m, attribute.t)
    elif kind == AttributeProto.GRAPH:
        attribute.g.CopyFrom(_branch(m))


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


# ------------------------------------------------------------------------------------------------------- tensors


def _spoil_tensor(m: Mutator, tensor: Any) -> None:
    which = m.rng.randrange(12)
    if which <= 2:
        tensor.data_type = m.rng.choice(KINDS)
    elif which == 3:
        tensor.dims.append(m.integer())
    elif which == 4 and tensor.dims:
        tensor.dims[m.rng.randrange(len(tensor.dims))] = m.integer()
    elif which == 5 and tensor.dims:
        del tensor.dims[m.rng.randrange(len(tensor.dims)) :]
    elif which == 6:
        tensor.raw_data = tensor.raw_data[: m.rng.randrange(len(tensor.raw_data) + 1)]
    elif which == 7:
        tensor.raw_data += bytes(m.rng.randrange(256) for _ in range(m.rng.choice((1, 4, 8))))
    elif which == 8:
        tensor.int32_data.extend(m.rng.randint(-5, 300) for _ in range(3))
    elif which == 9:
        tensor.ClearField("raw_data")
        fields = ("float_data", "int32_data", "int64_data", "double_data")
        getattr(tensor, m.rng.choice(fields)).extend([1] * m.rng.choice((0, 1, 4, 9)))
    elif which == 10:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key in ("location", "offset", "length", "checksum"):
            if m.rng.random() < 0.7:
                value = m.rng.choice(
                    ("w.bin", "../../../../etc/passwd", "/etc/passwd", "", "-1", "5", "9" * 5000, "\0")
                )
                tensor.external_data.add(key=key, value=value)
    else:
        tensor.segment.begin = 0
        tensor.segment.end = 4


@mutation()
def spoil_initialiser(m: Mutator) -> None:
    _spoil_tensor(m, m.rng.choice(m.graph.initializer))


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


# ------------------------------------------------------------------------------------------------------ signature


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


# ------------------------------------------------------------------------------------------- subgraphs, functions


def _branch(m: Mutator) -> Any:
    node = onnx.NodeProto()
    node.CopyFrom(m.rng.choice(m.graph.node))
    node.output[:] = [f"inner{i}" if name else "" for i, name in enumerate(node.output)]
    outputs = [helper.make_value_info(node.output[0], helper.make_tensor_type_proto(1, None))]
    constants = [m.tensor("in a branch")] if m.rng.random() < 0.3 else []
    if constants and m.rng.random() < 0.3:
        _spoil_tensor(m, constants[0])
    return helper.make_graph([node], "branch", [], outputs, constants)


@mutation(2)
def wrap_in_if(m: Mutator) -> None:
    position = m.rng.randrange(len(m.graph.node))
    old = m.graph.node[position]
    condition = m.constant()
    if m.rng.random() < 0.7:
        flag = np.asarray(m.rng.random() < 0.5)
        m.graph.initializer[-1].CopyFrom(numpy_helper.from_array(flag, condition))
    inner = _branch(m)
    inner.node[0].CopyFrom(old)
    inner.node[0].output[:] = [f"inner{i}" if name else "" for i, name in enumerate(old.output)]
    inner.output[0].name = inner.node[0].output[0]
    other = _branch(m) if m.rng.random() < 0.6 else inner
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
    wrapped = helper.make_node(op, inputs, list(old.output), body=_branch(m))
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


# -------------------------------------------------------------------------------------------------------- versions


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


# ---------------------------------------------------------------------------------------------------- quantisation


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
