"""A lowered model: a list of layers over named values, each layer a few C calls. No TVM type from here on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from uaccel.basics.favour import Favour
from uaccel.basics.roots import roots_of
from uaccel.cpu_kernels import Choice
from uaccel.model import ImportedModel, Origin, Signature, StateSpec, TensorInfo, TensorSpec
from uaccel.ops.kernel import Definition, Kernel

CPU: Final = "cpu"


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
    reason: str = ""
    """Why the accelerator computes it."""


@dataclass(frozen=True)
class Engine:
    """An accelerator, as generated code needs it.

    ``hook`` is its name in ``TVMDevice<hook>Activate``; ``files`` are its driver and the model of its
    device, by their place in its folder.
    """

    name: str
    hook: str
    headers: tuple[str, ...]
    files: tuple[tuple[str, Path], ...]
    tolerance: float = 0


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
    labels: tuple[str, ...] = ()
    """Of the commands that the accelerator plays."""
    refused: str = ""
    choice: Choice | None = None
    """Between several kernels, or several lowerings of a vendor's."""
    cycles: float = 0
    """That its accelerator is expected to take."""
    instructions: float | None = None
    """That the accelerator's driver is expected to take of the CPU; None where nobody says."""

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
            otherwise=None,
        )

    @property
    def forms(self) -> tuple[Layer, ...]:
        """Itself, and its twin where it has one."""
        twin = self.twin
        return (self,) if twin is None else (self, twin)

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

    def engine(self, layer: Layer) -> Engine:
        """The accelerator of a layer."""
        return next(engine for engine in self.engines if engine.name == layer.engine)
