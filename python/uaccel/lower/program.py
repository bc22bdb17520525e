"""Layers and C calls as plain data."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from uaccel.accelerator.description import HOOKS
from uaccel.errors import InternalError
from uaccel.kernels import Choice
from uaccel.memory.blocks import roots_of
from uaccel.model import ImportedModel, Origin, Signature, StateSpec, TensorInfo, TensorSpec
from uaccel.ops.operator import Computable, Definition, Kernel, KernelCall, Site
from uaccel.util.favour import Favour
from uaccel.util.files import data_dir
from uaccel.util.text import CPU

# A lowered model: a list of layers over named values, each layer a few C calls. No TVM type from here on.


@dataclass(frozen=True)
class Value:
    """A tensor that exists at run time. ``name`` is unique and a C identifier."""

    name: str
    spec: TensorSpec

    @property
    def info(self) -> TensorInfo:
        return self.spec.info


@dataclass(frozen=True)
class StateValue:
    """What lasts from one inference to the next: ``before`` and ``after`` lie in the same bytes of the state.

    ``after`` is None where no inference changes it.
    """

    spec: StateSpec
    before: Value
    after: Value | None


@dataclass(frozen=True)
class Covered:
    """An operator of the model that a layer computes, perhaps together with others."""

    name: str
    op: str
    origin: Origin
    output: TensorInfo
    macs: int
    reason: str = ""  # Why the accelerator computes it.


@dataclass(frozen=True)
class Engine:
    """An accelerator, as generated code needs it.

    ``hook`` is its name in ``TVMDevice<hook>Activate``; ``hooks`` are those that its driver has. ``files`` are its
    driver and the model of its device, by their place in its folder; ``has_device``: there is one.
    """

    name: str
    hook: str
    headers: tuple[str, ...]
    files: tuple[tuple[str, Path], ...]
    tolerance: float = 0
    hooks: tuple[str, ...] = HOOKS
    has_device: bool = True
    device_build: str = ""  # What the device's model takes to be built, as CMake reads it.


@dataclass(frozen=True, eq=False)
class Applied:
    """An operator and where it stands: what kernels for a part of its rows are chosen by."""

    operator: Computable
    site: Site[Any]


@dataclass(frozen=True)
class Rows:
    """Where a band begins: ``offset`` bytes into the row buffer of a value (``buffer``), or where the layer's cursor
    in an input or output stands, which then goes ``advance`` bytes on."""

    memory: str
    offset: int = 0
    advance: int = 0


@dataclass(frozen=True)
class Band:
    """Compute some rows of an operator: ``function`` is a number of ``Streaming.functions``."""

    function: int
    inputs: tuple[Rows, ...]
    output: Rows


@dataclass(frozen=True)
class Keep:
    """Rows of a buffer that are needed again move to its front."""

    memory: str
    source: int
    bytes: int


@dataclass(frozen=True)
class Receive:
    """So many bytes of the fed input are to come, behind ``offset`` bytes in its buffer; ends a step."""

    memory: str
    offset: int
    bytes: int


Action = Band | Keep | Receive


@dataclass(frozen=True)
class Cursor:
    """How far a reader or writer has come in a whole tensor: number ``index`` of the layer's inputs or outputs."""

    name: str
    side: str
    index: int
    of: str


@dataclass(frozen=True)
class RowBuffer:
    """``offset`` bytes into the layer's scratch: ``rows`` rows of a value."""

    value: Value
    offset: int
    rows: int


@dataclass(frozen=True)
class Streaming:
    """How a layer computes several operators, some rows at a time.

    ``operators`` are the layers that it takes the place of. ``functions`` are their parts, one for each number and
    place of rows; ``scratch`` says where theirs lies in the layer's. ``steps`` are the kinds of steps, ``order`` the
    kinds' numbers one after the other. ``fed``: the caller hands over the rows of the layer's input.
    """

    operators: tuple[Layer, ...]
    functions: tuple[Layer, ...]
    scratch: tuple[int, ...]
    buffers: tuple[RowBuffer, ...]
    cursors: tuple[Cursor, ...]
    steps: tuple[tuple[Action, ...], ...]
    order: tuple[int, ...]
    band: int
    fed: Value | None = None


@dataclass(frozen=True)
class Layer:
    """One operator of the model, as it runs. ``reason`` says why this engine computes it and how.

    Of an accelerator's layer ``covers`` are the model's operators, ``otherwise`` is what the CPU does when the
    accelerator fails (None: the run fails then), and ``artefacts`` are files about it for a reader.
    ``refused`` says why no accelerator that was asked computes a layer of the CPU's.
    """

    index: int
    name: str
    op: str
    engine: str
    reason: str
    origin: Origin
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    kernel: Kernel
    macs: int = 0
    definition: Definition | None = None
    covers: tuple[Covered, ...] = ()
    otherwise: Kernel | None = None
    otherwise_definition: Definition | None = None
    artefacts: Mapping[str, str | bytes] = field(default_factory=dict)
    labels: tuple[str, ...] = ()  # Of the commands that the accelerator plays.
    refused: str = ""
    choice: Choice | None = None  # Between several kernels, or several lowerings of a vendor's.
    cycles: float = 0  # That its accelerator is expected to take.
    # That the accelerator's driver is expected to take of the CPU; None where nobody says.
    instructions: float | None = None
    moved: int | None = None  # Bytes that the accelerator carries between memory and chip; None where nobody says.
    applied: Applied | None = None  # Where the CPU computes an integer operator.
    inner: tuple[Layer, ...] = ()  # Of control flow: the layers of its functions, which its own C calls.
    streaming: Streaming | None = None  # Where it computes several operators by rows.

    @property
    def is_view(self) -> bool:
        return self.kernel.view

    @property
    def on_accelerator(self) -> bool:
        return self.engine != CPU

    @property
    def twin(self) -> Layer | None:
        """The same layer by the CPU, for when its accelerator fails."""
        if self.otherwise is None:
            return None
        return replace(
            self,
            name=f"{self.name}_on_cpu",
            engine=CPU,
            reason=f"in place of {self.engine}, should it fail",
            kernel=self.otherwise,
            definition=self.otherwise_definition,
            cycles=0,
            instructions=None,
            moved=None,
            otherwise=None,
        )

    @property
    def forms(self) -> tuple[Layer, ...]:
        """Itself, and its twin where it has one."""
        twin = self.twin
        return (self,) if twin is None else (self, twin)

    @property
    def functions(self) -> tuple[Layer, ...]:
        """What becomes functions, each after those that it calls: its twin, the parts that compute its rows, or the
        layers of its functions."""
        parts = () if self.streaming is None else self.streaming.functions
        inner = (function for layer in self.inner for function in layer.functions)
        return (*parts, *inner, *reversed(self.forms))

    @property
    def operators(self) -> tuple[Layer, ...]:
        """The layers that it takes the place of; itself where it computes its operator as a whole."""
        return (self,) if self.streaming is None else self.streaming.operators

    @property
    def scratch(self) -> int:
        """Bytes that it needs while it runs, whoever computes it."""
        return max(form.kernel.scratch for form in self.forms)


def view_roots(layers: Iterable[Layer]) -> dict[str, str]:
    """For each view the value whose bytes it looks at, which is no view itself."""
    views = (layer for layer in layers if layer.is_view and layer.inputs)
    return roots_of({layer.outputs[0].name: layer.inputs[0].name for layer in views})


@dataclass(frozen=True)
class Program:
    """``inputs`` and ``outputs`` are the values that stand for the signature's tensors, in its order.

    ``favour``: what the user wants saved, for the stages that follow.
    """

    name: str
    model: ImportedModel
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    layers: tuple[Layer, ...]
    engines: tuple[Engine, ...] = ()
    state: tuple[StateValue, ...] = ()
    favour: Favour = Favour.balanced

    @property
    def signature(self) -> Signature:
        return self.model.signature

    @property
    def fed(self) -> Value | None:
        """The input whose rows are handed over: to the first layer."""
        first = self.layers[0].streaming if self.layers else None
        return first.fed if first is not None else None

    @property
    def held(self) -> tuple[Value, ...]:
        """The inputs but the one whose rows are handed over."""
        return tuple(value for value in self.inputs if value != self.fed)

    @property
    def devices(self) -> tuple[Engine, ...]:
        """The accelerators that the application gives handles for."""
        return tuple(engine for engine in self.engines if engine.has_device)

    def engine(self, layer: Layer) -> Engine:
        """The accelerator of a layer."""
        return next(engine for engine in self.engines if engine.name == layer.engine)


# What kernels are given as parameters, held against their structures in C, where a field that is left out is 0.

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRUCTURE = re.compile(r"^struct (\w+) \{(.*?)^\};", re.DOTALL | re.MULTILINE)
_DECLARATION = re.compile(r"(struct )?(\w+) (.+)", re.DOTALL)
_MEMBER = re.compile(r"(\w+)(?:\[(\w+)\])?")
_NUMBER = re.compile(r"^#define (\w+) (\d+)\s*$", re.MULTILINE)

Fields = Mapping[str, int]  # How many numbers each takes, by its name; of a structure in a structure ``finish.sign``.


def check_parameters(kernel: Kernel) -> Kernel:
    """The kernel; InternalError where a call of it does not give each field of its structure, and no other."""
    for call in kernel.calls:
        if call.struct:
            _check(call, fields_of(call.struct))
    return kernel


def _check(call: KernelCall, wanted: Fields) -> None:
    where = f"{call.function} is called with struct {call.struct}"
    given = {name: len(value) if isinstance(value, tuple) else 1 for name, value in call.parameters.items()}
    for name in wanted:
        if name not in given:
            raise InternalError(f"{where} without its field {name}; give it where the kernel is offered")
    for name, count in given.items():
        if wanted.get(name) != count:
            raise InternalError(f"{where} and {count} numbers for {name}, which takes {wanted.get(name, 0)}")


@functools.cache
def fields_of(structure: str) -> Fields:
    """In the order in which the header of a kernel declares them."""
    if structure not in _bodies():
        raise InternalError(f"no header of firmware/kernels declares struct {structure}")
    return dict(_members(structure))


@functools.cache
def _headers() -> str:
    headers = sorted((data_dir("firmware") / "kernels").rglob("*.h"))
    return _COMMENT.sub("", "\n".join(header.read_text() for header in headers))


@functools.cache
def _bodies() -> Mapping[str, str]:
    """What stands between the braces, by the structure's name."""
    return dict(_STRUCTURE.findall(_headers()))


@functools.cache
def _numbers() -> Mapping[str, str]:
    """Macros that stand for one."""
    return dict(_NUMBER.findall(_headers()))


def _members(structure: str) -> Iterator[tuple[str, int]]:
    for declaration in _bodies()[structure].split(";")[:-1]:
        match = _DECLARATION.fullmatch(declaration.strip())
        members = [_MEMBER.fullmatch(part.strip()) for part in match[3].split(",")] if match else [None]
        for member in members:
            if match is None or member is None:
                raise InternalError(f"struct {structure}: {declaration.strip()!r} declares no numbers")
            count = int(_numbers().get(member[2], member[2] or 1))
            inner = fields_of(match[2]).items() if match[1] else [("", count)]
            yield from ((f"{member[1]}.{field}".rstrip("."), numbers) for field, numbers in inner)
