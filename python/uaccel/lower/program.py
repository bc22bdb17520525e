"""Holds a lowered program as plain data: layers over named values, each with its C calls. No TVM type is used here."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from uaccel.accelerator.description import HOOKS
from uaccel.accelerator.machine import Tile
from uaccel.errors import InternalError, need
from uaccel.kernels import Choice
from uaccel.memory.blocks import roots_of
from uaccel.model import ImportedModel, Origin, Signature, StateSpec, TensorInfo, TensorSpec
from uaccel.ops.kernel import Definition, Kernel, KernelCall
from uaccel.ops.operator import Computable, Site
from uaccel.util import incoming
from uaccel.util.favour import Favour
from uaccel.util.files import data_dir
from uaccel.util.text import CPU


@dataclass(frozen=True)
class Value:
    """Names a tensor that exists at run time. ``name`` is unique and a C identifier."""

    name: str
    spec: TensorSpec

    @property
    def info(self) -> TensorInfo:
        return self.spec.info


@dataclass(frozen=True)
class StateValue:
    """Names a tensor that lasts from one inference to the next: ``before`` and ``after`` lie in the same bytes.

    ``after`` is None where no inference changes it.
    """

    spec: StateSpec
    before: Value
    after: Value | None


@dataclass(frozen=True)
class Covered:
    """Describes an operator of the model that a layer computes, perhaps together with others."""

    name: str
    op: str
    origin: Origin
    output: TensorInfo
    macs: int
    reason: str = ""  # Why the accelerator computes it.


ARRAY_ALIGNMENT: Final = 16  # Bytes, of every array that holds tensors.


@dataclass(frozen=True)
class Engine:
    """Describes an accelerator, as generated code needs it.

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
    device_build: str = ""  # How the device's model is built, as CMake reads it.
    alignment: int = 1  # Bytes, of every address that the device gets.


@dataclass(frozen=True, eq=False)
class Applied:
    """Holds an operator and its site, by which kernels for some of its rows are chosen."""

    operator: Computable
    site: Site[Any]


@dataclass(frozen=True)
class Rows:
    """States where the rows of a band begin: ``offset`` bytes into a row buffer, or where a cursor stands.

    ``memory`` names the buffer or the cursor; a cursor then advances by ``advance`` bytes.
    """

    memory: str
    offset: int = 0
    advance: int = 0


@dataclass(frozen=True)
class Band:
    """Computes some rows of an operator: ``function`` is a number of ``Streaming.functions``."""

    function: int
    inputs: tuple[Rows, ...]
    output: Rows


@dataclass(frozen=True)
class Keep:
    """Moves rows of a buffer that are needed again to its front."""

    memory: str
    source: int
    bytes: int


@dataclass(frozen=True)
class Receive:
    """Receives bytes of the fed input, behind ``offset`` bytes in its buffer (-1: nobody reads them); ends a step."""

    memory: str
    offset: int
    bytes: int


Action = Band | Keep | Receive


@dataclass(frozen=True)
class Cursor:
    """Names a pointer into input or output ``index`` of the layer, which operator ``of`` moves on as it goes."""

    name: str
    side: str
    index: int
    of: str


@dataclass(frozen=True)
class RowBuffer:
    """Describes a buffer for ``rows`` rows of a value, ``offset`` bytes into the layer's scratch memory."""

    value: Value
    offset: int
    rows: int


@dataclass(frozen=True)
class Streaming:
    """Describes how a layer computes several operators, some rows at a time.

    ``operators``: the layers that it replaces. ``functions``: their functions, one for each number and place of rows;
    ``scratch``: the offset of each one's scratch memory in the layer's. ``steps``: the different steps; ``order``:
    their numbers in the order in which they run. ``fed``: the input whose rows the caller hands over.
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
    """Describes one operator of the model, as it runs. ``reason`` says why this engine computes it and how.

    For an accelerator's layer, ``covers`` are the model's operators, ``otherwise`` is what the CPU does when the
    accelerator fails (None: the run fails then), and ``artefacts`` are files about it for a reader.
    ``refused`` says why no accelerator computes a layer of the CPU's.
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
    labels: tuple[str, ...] = ()  # The labels of the commands that the accelerator runs.
    refused: str = ""
    choice: Choice | None = None  # The choice between several kernels, or several lowerings of a vendor's.
    cycles: float = 0  # The cycles that its accelerator is expected to take.
    cpu_cycles: float | None = None  # What the CPU would take by estimate for what an accelerator computes.
    # The CPU's instructions that the accelerator's driver is expected to take; None where they are not stated.
    instructions: float | None = None
    moved: int | None = None  # Bytes that the accelerator carries between memory and chip; None where not stated.
    moved_by: Mapping[str, int] = field(default_factory=dict)  # The same for each operator of a region.
    tiles: tuple[Tile, ...] = ()  # What lies on the accelerator's chip, and during which commands.
    applied: Applied | None = None  # The operator and its site, where the CPU computes an integer operator.
    inner: tuple[Layer, ...] = ()  # The layers of the functions of control flow, which its own C calls.
    streaming: Streaming | None = None  # How it computes several operators by rows, where it does.

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
        """The layer itself, and its twin where it has one."""
        twin = self.twin
        return (self,) if twin is None else (self, twin)

    @property
    def functions(self) -> tuple[Layer, ...]:
        """The layers that become C functions, each after those that it calls: parts, inner layers, twin, itself."""
        parts = () if self.streaming is None else self.streaming.functions
        inner = (function for layer in self.inner for function in layer.functions)
        return (*parts, *inner, *reversed(self.forms))

    @property
    def operators(self) -> tuple[Layer, ...]:
        """The layers that it replaces; itself where it computes its operator as a whole."""
        return (self,) if self.streaming is None else self.streaming.operators

    @property
    def scratch(self) -> int:
        """Bytes that it needs while it runs, whoever computes it."""
        return max(form.kernel.scratch for form in self.forms)


def view_roots(layers: Iterable[Layer]) -> dict[str, str]:
    """Gives for each view the value whose bytes it views, which is no view itself."""
    views = (layer for layer in layers if layer.is_view and layer.inputs)
    return roots_of({layer.outputs[0].name: layer.inputs[0].name for layer in views})


@dataclass(frozen=True)
class Program:
    """Holds a lowered model. ``inputs`` and ``outputs`` stand for the signature's tensors, in its order.

    ``favour``: what the user wants saved, for the stages that follow. ``cpu``: the name of the core that it is for.
    """

    name: str
    model: ImportedModel
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    layers: tuple[Layer, ...]
    engines: tuple[Engine, ...] = ()
    state: tuple[StateValue, ...] = ()
    favour: Favour = Favour.balanced
    cpu: str = ""

    @property
    def signature(self) -> Signature:
        return self.model.signature

    @property
    def fed(self) -> Value | None:
        """The input whose rows the caller hands over to the first layer, if any."""
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

    def device_alignment(self, layer: Layer) -> int:
        """What the addresses of a layer's tensors, constants and scratch memory are multiples of for its device."""
        engine = self.engine(layer) if layer.on_accelerator else None
        return engine.alignment if engine is not None and engine.has_device else 1

    @property
    def alignment(self) -> int:
        """Bytes, to which arrays are aligned in which tensors lie: the strictest device's."""
        return max([ARRAY_ALIGNMENT, *(engine.alignment for engine in self.devices)])


# Checks the parameters of kernels against their structures in C, where a field that is left out would silently be 0.

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STRUCTURE = re.compile(r"^struct (\w+) \{(.*?)^\};", re.DOTALL | re.MULTILINE)
_DECLARATION = re.compile(r"(struct )?(\w+) (.+)", re.DOTALL)
_MEMBER = re.compile(r"(\w+)(?:\[(\w+)\])?")
_NUMBER = re.compile(r"^#define (\w+) (\d+)\s*$", re.MULTILINE)

Fields = Mapping[str, int]  # How many numbers each field takes, by its name; nested ones are like ``finish.sign``.


def check_parameters(kernel: Kernel) -> Kernel:
    """Returns the kernel; InternalError where a call of it does not give exactly the fields of its structure."""
    for call in kernel.calls:
        if call.struct:
            _check(call, fields_of(call.struct))
    return kernel


def _check(call: KernelCall, wanted: Fields) -> None:
    where = f"{call.function} is called with struct {call.struct}"
    given = {name: len(value) if isinstance(value, tuple) else 1 for name, value in call.parameters.items()}
    for name in wanted:
        need(name in given, f"{where} without its field {name}; give it where the kernel is offered", InternalError)
    for name, count in given.items():
        if wanted.get(name) != count:
            raise InternalError(f"{where} and {count} numbers for {name}, which takes {wanted.get(name, 0)}")


@functools.cache
def fields_of(structure: str) -> Fields:
    """The fields of a structure, in the order in which a kernel's header declares them."""
    need(structure in _bodies(), f"no header of firmware/kernels declares struct {structure}", InternalError)
    return dict(_members(structure))


@functools.cache
def _headers() -> str:
    headers = sorted((data_dir("firmware") / "kernels").rglob("*.h"))
    return _COMMENT.sub("", "\n".join(incoming.read_text(header) for header in headers))


@functools.cache
def _bodies() -> Mapping[str, str]:
    """The text between the braces of each structure, by its name."""
    return dict(_STRUCTURE.findall(_headers()))


@functools.cache
def _numbers() -> Mapping[str, str]:
    """The macros that stand for a number."""
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
