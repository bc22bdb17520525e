"""Models that remember: one SVDF or LSTM layer, or a buffer of frames in a resource variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from support.models.tflite_writer import ModelBuilder, OptionValue, Tensor

Array = NDArray[Any]


@dataclass(frozen=True)
class Svdf:
    """``dtype`` and the rest of the state; ``bias`` gives all biases, which else are drawn."""

    dtype: str = "int16"
    zero_point: int = 0
    batch: int = 1
    depth: int = 10
    filters: int = 8
    rank: int = 2
    memory: int = 5
    scales: tuple[float, float, float, float, float] = (0.1, 0.01, 0.001, 0.02, 0.05)
    """Of input, feature weights, state, time weights, output."""
    bias: Array | None = None

    def build(self) -> bytes:
        generator = np.random.RandomState(7)
        model = ModelBuilder()
        given, features, state, times, out = self.scales
        units = self.filters // self.rank
        bias = generator.randint(-500, 500, units) if self.bias is None else self.bias
        weights = generator.randint(-127, 128, (self.filters, self.depth)).astype(np.int8)
        filters = generator.randint(-100, 101, (self.filters, self.memory)).astype(self.dtype)
        arguments = [
            model.input("x", (self.batch, self.depth), "int8", scale=given, zero_point=-7),
            model.constant("features", weights, scale=features),
            model.constant("times", filters, scale=times),
            model.constant("bias", bias.astype(np.int32), scale=state * times),
            model.variable(
                "state",
                (self.batch, self.filters * self.memory),
                self.dtype,
                scale=state,
                zero_point=self.zero_point,
            ),
        ]
        y = model.tensor("y", (self.batch, units), "int8", scale=out, zero_point=-5)
        model.op("SVDF", arguments, [y], {"rank": self.rank, "fused_activation": "RELU"})
        return model.build(y)


@dataclass(frozen=True)
class Lstm:
    """``cell_power``: the cell state's scale as a power of two; ``extra`` are inputs that stand where others have none;
    ``bias`` is the cell gate's."""

    dtype: str = "int8"
    time_major: bool = False
    batch: int = 2
    steps: int = 3
    depth: int = 7
    units: int = 6
    clip: float = 0.0
    cell_power: int = -12
    weight_scale: float = 0.002
    extra: tuple[int, ...] = ()
    activation: str = "TANH"
    bias: Array | None = None

    def build(self) -> bytes:
        generator = np.random.RandomState(9)
        model = ModelBuilder()
        outer = (self.steps, self.batch) if self.time_major else (self.batch, self.steps)
        small = self.dtype == "int8"
        scale = 0.01 if small else 2.0**-12
        hidden: dict[str, Any] = {"scale": 1 / 128 if small else 2.0**-15, "zero_point": 5 if small else 0}
        arguments: list[Tensor | None] = [None] * 24
        arguments[0] = model.input("x", (*outer, self.depth), self.dtype, scale=scale, zero_point=-7 if small else 0)
        for gate in range(4):
            into = generator.randint(-127, 128, (self.units, self.depth)).astype(np.int8)
            back = generator.randint(-127, 128, (self.units, self.units)).astype(np.int8)
            bias = generator.randint(-500, 500, self.units)
            bias = self.bias if gate == 2 and self.bias is not None else bias
            gate_scale = self.weight_scale * (1 + gate)
            arguments[1 + gate] = model.constant(f"into {gate}", into, scale=gate_scale)
            arguments[5 + gate] = model.constant(f"back {gate}", back, scale=0.007 * (1 + gate / 3))
            kind = np.int32 if small else np.int64
            arguments[12 + gate] = model.constant(f"bias {gate}", bias.astype(kind), scale=gate_scale * scale)
        arguments[18] = model.variable("hidden", (self.batch, self.units), self.dtype, **hidden)
        arguments[19] = model.variable("cell", (self.batch, self.units), "int16", scale=2.0**self.cell_power)
        for position in self.extra:
            values = np.ones(self.units, np.int16)
            arguments[position] = model.constant(f"extra {position}", values, scale=0.1)
        y = model.tensor("y", (*outer, self.units), self.dtype, **hidden)
        options: dict[str, OptionValue] = {
            "fused_activation": self.activation,
            "time_major": self.time_major,
            "cell_clip": self.clip,
        }
        model.op("UNIDIRECTIONAL_SEQUENCE_LSTM", arguments, [y], options)
        return model.build(y)


@dataclass(frozen=True)
class Circular:
    """Rows of a CIRCULAR_BUFFER and their sum with themselves; ``period`` stands in the options where it is not 0."""

    rows: int = 4
    period: int = 1
    is_variable: bool = True
    shown: bool = False

    def build(self) -> bytes:
        model = ModelBuilder()
        x = model.input("x", (1, 1, 2, 3), "int8", scale=0.1, zero_point=3)
        make = model.variable if self.is_variable else model.tensor
        kept = make("kept", (1, self.rows, 2, 3), "int8", scale=0.1, zero_point=3)
        y = model.tensor("y", kept.shape, "int8", scale=0.2, zero_point=5)
        options = flexbuffers.Dumps({"cycles_max": self.period}) if self.period else b""
        model.op("CUSTOM", [x], [kept], custom_code="CIRCULAR_BUFFER", custom_options=bytes(options))
        model.op("ADD", [kept, kept], [y])
        return model.build(*((y, kept) if self.shown else (y,)))


QUANTISED: dict[str, Any] = {"scale": 0.1, "zero_point": 3}


@dataclass(frozen=True)
class Ring:
    """The last six rows are kept in a variable, two come with every frame: their sum with the frame is the output.

    ``first``: assigned by CALL_ONCE where it is given. ``shown``: the variable, too, is an output, as it was before.
    ``init_operator`` stands in the subgraph besides.
    """

    dtype: str = "int8"
    first: Array | None = None
    shown: bool = False
    assigned: bool = True
    init_operator: str = ""

    def build(self) -> bytes:
        model = ModelBuilder()
        quantised = QUANTISED if self.dtype == "int8" else {**QUANTISED, "zero_point": 0}

        def tensor(name: str, rows: int) -> Tensor:
            return model.tensor(name, (1, rows, 3), self.dtype, **quantised)

        x = model.input("x", (1, 2, 3), self.dtype, **quantised)
        handle = model.tensor("handle", (1,), "resource")
        old, joined, kept, y = tensor("old", 6), tensor("joined", 8), tensor("kept", 6), tensor("y", 8)
        if self.first is not None:
            self._init(model, quantised)
        model.op("VAR_HANDLE", [], [handle], {"container": "", "shared_name": "rows"})
        model.op("READ_VARIABLE", [handle], [old])
        model.op("CONCATENATION", [old, x], [joined], {"axis": 1})
        begin = model.constant("begin", np.array([0, 2, 0], np.int32))
        size = model.constant("size", np.array([1, 6, 3], np.int32))
        model.op("SLICE", [joined, begin, size], [kept])
        if self.assigned:
            model.op("ASSIGN_VARIABLE", [handle, kept], [])
        model.op("ADD", [joined, joined], [y])
        model.output(y)
        if self.shown:
            model.output(old)
        return model.build()

    def _init(self, model: ModelBuilder, quantised: dict[str, Any]) -> None:
        init = model.subgraph()
        handle = init.tensor("handle", (1,), "resource")
        value = init.constant("first", np.asarray(self.first, self.dtype), **quantised)
        init.op("VAR_HANDLE", [], [handle], {"container": "", "shared_name": "rows"})
        if self.init_operator:
            computed = init.tensor("computed", value.shape, self.dtype, **quantised)
            init.op(self.init_operator, [value], [computed])
            value = computed
        init.op("ASSIGN_VARIABLE", [handle, value], [])
        model.op("CALL_ONCE", [], [], {"init_subgraph_index": 1})
