"""Plain data that every stage shares: tensors and their quantisation, without any TVM type."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]
Array = NDArray[Any]


@dataclass(frozen=True)
class TensorInfo:
    """What a type checker knows of a tensor."""

    shape: Shape
    dtype: str

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def size(self) -> int:
        """Bytes."""
        return self.elements * self.itemsize

    def __str__(self) -> str:
        return f"{self.dtype} [{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Quantisation:
    """real = scale * (stored - zero_point); one entry per tensor or one per slice along ``axis``."""

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0

    @property
    def scale(self) -> float:
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        return self.zero_points[0]

    @property
    def per_channel(self) -> bool:
        return len(self.scales) > 1

    def __str__(self) -> str:
        if self.per_channel:
            return f"per channel along axis {self.axis}"
        return f"scale {self.scale:.9g}, zero point {self.zero_point}"


@dataclass(frozen=True)
class TensorSpec:
    """A named tensor of the model, as its author knows it."""

    name: str
    info: TensorInfo
    quantisation: Quantisation | None = None

    def to_json(self) -> dict[str, Any]:
        quantisation = self.quantisation
        return {
            "shape": list(self.info.shape),
            "dtype": self.info.dtype,
            "scale": quantisation.scale if quantisation else None,
            "zero_point": quantisation.zero_point if quantisation else None,
        }


@dataclass(frozen=True)
class Signature:
    """What goes in and what comes out, in the model file's order."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True, eq=False)
class StateSpec:
    """A tensor that lasts from one inference to the next, and what it holds before the first."""

    spec: TensorSpec
    initial: NDArray[Any] = field(repr=False)


@dataclass(frozen=True)
class Origin:
    """Where in the model file a layer comes from."""

    index: int
    op: str
    tensor: str


@dataclass(frozen=True)
class ModelFile:
    """A model as its user gave it; ``suffix`` tells its format."""

    suffix: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class ImportedModel:
    """A model file as a Relax module, with what Relax has no place for.

    ``tensors`` and ``origins`` are keyed by the names of the module's variables, which are unique. ``file`` is None for
    what was never one file. ``real`` is the module of floats and quantisation steps that ``module`` was made of, None
    for a model that says its integers itself.

    ``main`` is pure: of a model with ``state`` it takes one parameter more for each entry, behind the inputs, which is
    its value before the inference, and gives one result more, behind the outputs, which is its value after it.
    """

    name: str
    source_format: str
    digest: str
    module: Any
    signature: Signature
    tensors: Mapping[str, TensorSpec]
    origins: Mapping[str, Origin]
    warnings: tuple[str, ...] = field(default=())
    file: ModelFile | None = None
    real: Any = None
    state: tuple[StateSpec, ...] = field(default=())


def c_identifier(text: str) -> str:
    """The name as C allows it: other characters become underscores."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "unnamed"
    return f"_{name}" if name[0].isdigit() else name


def layer_name(operator: str, index: int) -> str:
    """conv_3: the operator and its number in the file, as Netron counts them."""
    return f"{c_identifier(operator).lower()}_{index}"


class UniqueNames:
    """Gives each name once; a repeated one gets a number, and no name given before changes."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, name: str) -> str:
        candidate, number = name, 1
        while candidate in self._taken:
            candidate, number = f"{name}_{number}", number + 1
        self._taken.add(candidate)
        return candidate


def unique_names(names: Iterable[str]) -> list[str]:
    """The names with the repeated ones numbered."""
    unique = UniqueNames()
    return [unique.take(name) for name in names]
