"""Layers that begin with the products of a vector and rows of weights, eight rows at a time: by a family's dot products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.cpu_kernels.output_stage import padded_to
from uaccel.cpu_kernels.registry import offers
from uaccel.ops.base import Site
from uaccel.ops.kernel import Argument, Constant, Kernel, Output, ParameterValue, Scratch
from uaccel.ops.svdf import Svdf, SvdfAttrs

ROWS: Final = 8
UNUSED: Final = Output(0)
"""Stands where scratch memory would, if vectors are whole units."""
Packer = Callable[[NDArray[np.int8]], "NDArray[np.int32] | None"]


@dataclass(frozen=True)
class Dots:
    """A family's way: ``pack`` lays out rows of weights, filled up to ``unit`` bytes, where it can add them up exactly."""

    family: str
    suffix: str
    requires: tuple[str, ...]
    unit: int
    pack: Packer

    def filled(self, depth: int) -> int:
        return -(-depth // self.unit) * self.unit

    def packed(self, weights: NDArray[np.int8]) -> NDArray[np.int32] | None:
        return self.pack(padded_to(padded_to(weights, 0, ROWS), 1, self.unit))

    def scratch(self, *depths: int) -> int:
        """For a vector that is filled up."""
        return max((self.filled(depth) for depth in depths if depth % self.unit), default=0)

    def kernel(self, portable: Kernel, weights: dict[str, NDArray[Any]], filled: dict[str, int], scratch: int) -> Kernel | None:
        """The portable kernel's call with these weights packed."""
        (call,) = portable.calls
        packed = {role: self.packed(rows) for role, rows in weights.items()}
        if any(stream is None for stream in packed.values()):
            return None

        def given(argument: Any) -> Any:
            stream = packed.get(argument.role) if isinstance(argument, Constant) else None
            return argument if stream is None else Constant(argument.role, stream)

        arguments: tuple[Argument, ...] = tuple(given(argument) for argument in call.arguments)
        parameters: dict[str, ParameterValue] = {f"layer.{name}": value for name, value in call.parameters.items()}
        own = replace(
            call,
            function=f"{call.function}_{self.suffix}",
            header=f"{call.struct}_{self.suffix}.h",
            struct=f"{call.struct}_dots",
            parameters=parameters | filled,
            arguments=arguments if Scratch() in arguments else (*arguments, Scratch() if scratch else UNUSED),
        )
        return replace(portable, family=self.family, calls=(own,), scratch=scratch, requires=self.requires)


def offer_dots(dots: Dots) -> None:
    """Of a family, every layer that is made of dot products."""

    @offers(Svdf, dots.requires)
    def svdf(site: Site[SvdfAttrs]) -> Kernel | None:
        (portable,) = Svdf().kernels(site)
        features = site.operands[2].value
        depth = features.shape[1]
        weights, filled = {"feature_weights": features}, {"filled": dots.filled(depth)}
        return dots.kernel(portable, weights, filled, dots.scratch(depth))
