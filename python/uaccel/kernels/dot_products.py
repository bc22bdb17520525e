"""Offers layers that begin with products of a vector and rows of weights, by a family's dot products of eight rows.

A family (`Dots`) states how it packs rows; SVDF, matrix products and fully connected layers then come of themselves:
each is the portable kernel's call with its weights packed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.kernels.output_stage import pad_axis
from uaccel.kernels.registry import EMBEDDED, DeclinedError, check_type, made, offers
from uaccel.ops.exact import TFLITE
from uaccel.ops.kernel import UNUSED, Argument, Constant, Kernel, ParameterValue, Scratch
from uaccel.ops.matmul import BatchMatmul, BatchMatmulAttrs, FullyConnected, FullyConnectedAttrs, matrix
from uaccel.ops.operator import Site
from uaccel.ops.svdf import Svdf, SvdfAttrs

ROWS: Final = 8  # Rows whose products are added up together.
# Products of two differences of bytes from their zero points, 255**2 < 2**16 at most: so many sum up to below 2**29.
LARGEST_DEPTH: Final = 1 << 13
LARGEST_SHIFT: Final = 30  # The most that a result is shifted right by.
WORD: Final = 4  # Bytes of a word.
Packer = Callable[[NDArray[np.int8]], NDArray[np.int32]]


@dataclass(frozen=True)
class Dots:
    """Describes a family's dot products.

    ``pack`` lays out up to eight rows of weights, filled up to ``unit`` bytes, or declines where sums would not be
    exact.
    """

    family: str
    suffix: str
    requires: tuple[str, ...]  # Features of the CPU; empty: any CPU of a board.
    unit: int
    pack: Packer
    element: int  # Bytes of an element of a matrix that is packed at run time.
    rank: int  # Its place among the kernels of each operator, see `offers`.
    # The family's own kernel for fully connected layers, where it is never slower.
    better: Callable[[Site[FullyConnectedAttrs]], Kernel | None] = lambda _site: None

    def filled(self, depth: int) -> int:
        return -(-depth // self.unit) * self.unit

    def packed(self, weights: NDArray[np.int8]) -> NDArray[np.int32]:
        """Packs matrices of rows one after the other, by eights of rows."""
        filled = pad_axis(weights, -1, self.unit)
        matrices = filled.reshape(-1, *filled.shape[-2:])
        eights = [matrix[first : first + ROWS] for matrix in matrices for first in range(0, len(matrix), ROWS)]
        return np.concatenate([self.pack(rows) for rows in eights])

    def scratch(self, *depths: int) -> int:
        """Returns the bytes for a copy of a vector that must be filled up; 0 where none must."""
        return max((self.filled(depth) for depth in depths if depth % self.unit), default=0)

    def kernel(
        self,
        portable: Kernel,
        layers: str,
        weights: dict[str, NDArray[Any]],
        filled: Mapping[str, ParameterValue],
        scratch: int,
    ) -> Kernel:
        """Makes the portable kernel's call with these weights packed. ``layers``: those of the family's header."""
        (call,) = portable.calls
        packed = {role: self.packed(rows) for role, rows in weights.items()}

        def given(argument: Any) -> Any:
            stream = packed.get(argument.role) if isinstance(argument, Constant) else None
            return argument if stream is None else Constant(argument.role, stream)

        arguments: tuple[Argument, ...] = tuple(given(argument) for argument in call.arguments)
        parameters: dict[str, ParameterValue] = {f"layer.{name}": value for name, value in call.parameters.items()}
        return portable.by(
            self.family,
            self.requires,
            scratch,
            function=f"{call.function}_dots_{self.suffix}",
            header=f"uaccel_{layers}_{self.suffix}.h",
            struct=f"{call.struct}_dots",
            parameters={**parameters, **filled},
            arguments=arguments if Scratch() in arguments else (*arguments, Scratch() if scratch else UNUSED),
        )

    def fully_connected(self, site: Site[FullyConnectedAttrs]) -> Kernel | None:
        """Makes the kernel for layers that the family's own kernel does not take."""
        weights = site.operands[1].value
        check_type(site, "int8")
        if weights.dtype != np.int8 or site.attrs.rounding != TFLITE or made(self.better, site) is not None:
            return None
        (portable,) = FullyConnected().kernels(site)
        depth = weights.shape[1]
        return self.kernel(
            portable, "fully_connected_dots", {"weights": weights}, {"filled": self.filled(depth)}, self.scratch(depth)
        )


def check_product(site: Site[BatchMatmulAttrs]) -> None:
    """Declines where sums of 32 bits, rounded as TFLite does, would not be exact."""
    attrs, depth = site.attrs, matrix(site.operands[0].info.shape, site.attrs.adj_x)[1]
    check_type(site, "int8")
    check_depth(depth)
    if attrs.rounding != TFLITE:
        raise DeclinedError("it rounds in single precision", "convert with TFLite's rounding")
    if attrs.multiplier < 0 or not -LARGEST_SHIFT <= attrs.shift <= 0:
        raise DeclinedError("its sums are scaled up, or by less than 2**-30", "quantise with another output scale")


def check_depth(depth: int) -> None:
    if depth > LARGEST_DEPTH:
        raise DeclinedError(f"a result has {depth} products, and {LARGEST_DEPTH} are the most", "split the matrices")


def offer_dots(dots: Dots) -> None:
    """Registers every layer that a family computes by dot products."""

    @offers(Svdf, dots.requires or EMBEDDED, rank=dots.rank)
    def svdf(site: Site[SvdfAttrs]) -> Kernel | None:
        (portable,) = Svdf().kernels(site)
        features = site.operands[2].value
        depth = features.shape[1]
        weights, filled = {"feature_weights": features}, {"filled": dots.filled(depth)}
        return dots.kernel(portable, "recurrent", weights, filled, dots.scratch(depth))

    @offers(BatchMatmul, dots.requires or EMBEDDED, rank=dots.rank)
    def batch_matmul(site: Site[BatchMatmulAttrs]) -> Kernel | None:
        """Packs eight columns of the right side at run time, as neither side is constant."""
        lhs = site.operands[0].info
        rows, depth = matrix(lhs.shape, site.attrs.adj_x)
        check_product(site)
        filled = -(-dots.filled(depth) // WORD) * WORD  # what lies behind it begins at a word
        packed = ROWS * filled * dots.element
        own: dict[str, ParameterValue] = {"filled": filled, "lhs_bytes": lhs.elements, "packed": packed}
        return dots.kernel(BatchMatmul().kernels(site)[0], "batch_matmul_dots", {}, own, filled + packed + WORD * rows)

    offers(FullyConnected, dots.requires or EMBEDDED, rank=dots.rank)(dots.fully_connected)
