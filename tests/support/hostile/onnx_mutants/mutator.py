"""What hostile changes are made of: a model that is changed, and values that nobody expects."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

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


def spoil_tensor(m: Mutator, tensor: Any) -> None:
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


def branch(m: Mutator) -> Any:
    node = onnx.NodeProto()
    node.CopyFrom(m.rng.choice(m.graph.node))
    node.output[:] = [f"inner{i}" if name else "" for i, name in enumerate(node.output)]
    outputs = [helper.make_value_info(node.output[0], helper.make_tensor_type_proto(1, None))]
    constants = [m.tensor("in a branch")] if m.rng.random() < 0.3 else []
    if constants and m.rng.random() < 0.3:
        spoil_tensor(m, constants[0])
    return helper.make_graph([node], "branch", [], outputs, constants)
