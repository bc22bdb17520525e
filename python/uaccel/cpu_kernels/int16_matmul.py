"""Matrix products of int16, four columns of the right side at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from uaccel.cpu_kernels.dots import LARGEST_DEPTH
from uaccel.cpu_kernels.registry import offers
from uaccel.cpu_kernels.target import EMBEDDED
from uaccel.ops.base import Site
from uaccel.ops.batch_matmul import BatchMatmul, BatchMatmulAttrs, matrix
from uaccel.ops.kernel import Kernel, ParameterValue, Scratch
from uaccel.ops.rounding import TFLITE

COLUMNS: Final = 4
"""At a time."""
ELEMENT: Final = 2
"""Bytes."""


def _offer(family: str, suffix: str, requires: tuple[str, ...], unit: int, rank: int, *, filled: bool = False) -> None:
    """Of a family whose columns are packed by so many elements; ``filled``: rows must have whole units, too."""

    @offers(BatchMatmul, requires or EMBEDDED, rank=rank)
    def matmul16(site: Site[BatchMatmulAttrs]) -> Kernel | None:
        lhs, attrs = site.operands[0].info, site.attrs
        _, depth = matrix(lhs.shape, attrs.adj_x)
        points = (attrs.lhs_zero_point, attrs.rhs_zero_point)
        if site.output.dtype != "int16" or attrs.rounding != TFLITE or any(points) or depth > LARGEST_DEPTH:
            return None
        (portable,) = BatchMatmul().kernels(site)
        (call,) = portable.calls
        whole = -(-depth // unit) * unit
        parameters: dict[str, ParameterValue] = {f"layer.{name}": value for name, value in call.parameters.items()}
        own = replace(
            call,
            function=f"{call.function}_{suffix}",
            header=f"{call.struct}16_{suffix}.h",
            struct=f"{call.struct}16",
            parameters={
                **parameters,
                "filled": whole if filled else depth,
                "lhs_count": lhs.elements,
                "packed": COLUMNS * whole,
            },
            arguments=(*call.arguments, Scratch()),
        )
        scratch = ELEMENT * (COLUMNS + 1) * whole
        return replace(portable, family=family, calls=(own,), scratch=scratch, requires=requires)


_offer("arm_helium", "helium", ("helium",), 8, 250)
_offer("arm_dsp", "dsp", ("dsp",), 2, 260, filled=True)
_offer("blocked", "blocked", (), 1, 400)
