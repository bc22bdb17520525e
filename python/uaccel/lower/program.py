"""A lowered model: a list of layers over named values, each layer a few C calls. No TVM type from here on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from uaccel.model import ImportedModel, Origin, Signature, TensorInfo, TensorSpec
from uaccel.ops.kernel import Kernel


@dataclass(frozen=True)
class Value:
    """A tensor that exists at run time. ``name`` is unique and a C identifier."""

    name: str
    spec: TensorSpec

    @property
    def info(self) -> TensorInfo:
        return self.spec.info


@dataclass(frozen=True)
class Definition:
    """A C function that a kernel call needs besides the kernel headers: what TVM generated for one operator."""

    name: str
    source: str
    headers: tuple[str, ...]


@dataclass(frozen=True)
class Layer:
    """One operator of the model, as it runs. ``reason`` says why this engine computes it and how."""

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
    attributes: Mapping[str, object] = field(default_factory=dict)

    @property
    def is_view(self) -> bool:
        return self.kernel.view


@dataclass(frozen=True)
class Program:
    """``inputs`` and ``outputs`` are the values that stand for the signature's tensors, in its order."""

    name: str
    model: ImportedModel
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    layers: tuple[Layer, ...]

    @property
    def signature(self) -> Signature:
        return self.model.signature
