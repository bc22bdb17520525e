"""Offers what Helium and the DSP extension compute alike: pools, sums and means, int16 matrix products.

Also offers, for any CPU, float layers whose half-precision weights are stored as float32 where speed is favoured.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from uaccel.kernels.dot_products import LARGEST_DEPTH
from uaccel.kernels.registry import EMBEDDED, offers
from uaccel.ops.conv_float import Conv2dFloat, FloatSumAttrs, FullyConnectedFloat, as_pixels, is_kernels, wide_kernel
from uaccel.ops.exact import TFLITE
from uaccel.ops.kernel import Kernel, ParameterValue, Scratch, dtype_suffix
from uaccel.ops.matmul import BatchMatmul, BatchMatmulAttrs, matrix
from uaccel.ops.operator import Site, get
from uaccel.ops.pool import AveragePool2d, MaxPool2d, PoolAttrs, pool_kernel
from uaccel.ops.reduce import ReduceMean, ReduceSum, ReduceSumAttrs, loop_parameters, reduced_elements
from uaccel.util.favour import Favour

# Pools: the portable call with another function, where that is exact.

HELIUM: Final = ("helium",)
DSP: Final = ("dsp",)
LARGEST_ROW: Final = 255  # Bytes of a window's row, whose sum fits 16 bits: 255 * 128 < 2**15.
LEAST_CHANNELS: Final = 4  # The DSP extension's kernels take four at a time; the last four may overlap those before.


@offers(AveragePool2d, HELIUM, rank=100)
def average_helium(site: Site[PoolAttrs]) -> Kernel | None:
    return _kernel("average", HELIUM, site) if _sums_fit(site) else None


@offers(MaxPool2d, HELIUM, rank=100)
def max_helium(site: Site[PoolAttrs]) -> Kernel | None:
    return _kernel("max", HELIUM, site)


@offers(AveragePool2d, DSP, rank=200)
def average_dsp(site: Site[PoolAttrs]) -> Kernel | None:
    return _kernel("average", DSP, site) if _sums_fit(site) and _wide_enough(site) else None


@offers(MaxPool2d, DSP, rank=200)
def max_dsp(site: Site[PoolAttrs]) -> Kernel | None:
    return _kernel("max", DSP, site) if _wide_enough(site) else None


def _sums_fit(site: Site[PoolAttrs]) -> bool:
    return site.output.dtype == "int16" or min(site.attrs.window[1], site.operands[0].info.shape[2]) <= LARGEST_ROW


def _wide_enough(site: Site[PoolAttrs]) -> bool:
    return site.output.shape[3] >= LEAST_CHANNELS


def _kernel(what: str, requires: tuple[str, ...], site: Site[PoolAttrs]) -> Kernel | None:
    if site.output.dtype not in ("int8", "int16"):
        return None
    (feature,) = requires
    portable = pool_kernel(f"uaccel_{what}_pool_{feature}", site)
    call = replace(portable.calls[0], header=f"uaccel_pool_{feature}.h")
    return replace(portable, family=f"arm_{feature}", calls=(call,), requires=requires)


# Sums and means: the portable call with another function, where what is added up lies row by row.

# Elements of a row. The DSP extension's kernel takes four at a time; the last four may overlap those before.
LEAST_NEIGHBOURS: Final = {"helium": 1, "dsp": 4}


def _sum(site: Site[ReduceSumAttrs], operator: type[ReduceMean] | type[ReduceSum], feature: str) -> Kernel | None:
    """Makes the kernel where what is added up lies row by row, as pixels do, and rounding is TFLite's; else None."""
    shape, attrs = site.operands[0].info.shape, site.attrs
    loops = loop_parameters(shape, attrs.axes)
    rows = loops["reduced_inner"] == loops["inner"] == 1 and loops["middle"] >= LEAST_NEIGHBOURS[feature]
    multiplier, shift = operator().factor(attrs, reduced_elements(shape, attrs.axes))
    exact = attrs.rounding == TFLITE and multiplier >= 0 and shift <= 0
    if not rows or not exact or site.output.dtype not in ("int8", "int16"):
        return None
    portable = get(operator).kernels(site)[0]
    function = f"uaccel_reduce_sum_{feature}_{dtype_suffix(site.output.dtype)}"
    own = replace(portable.calls[0], function=function, header=f"uaccel_reduce_{feature}.h")
    return replace(portable, family=f"arm_{feature}", calls=(own,), requires=(feature,))


@offers(ReduceMean, ("helium",), rank=100)
def mean_helium(site: Site[ReduceSumAttrs]) -> Kernel | None:
    return _sum(site, ReduceMean, "helium")


@offers(ReduceSum, ("helium",), rank=100)
def sum_helium(site: Site[ReduceSumAttrs]) -> Kernel | None:
    return _sum(site, ReduceSum, "helium")


@offers(ReduceMean, ("dsp",), rank=200)
def mean_dsp(site: Site[ReduceSumAttrs]) -> Kernel | None:
    return _sum(site, ReduceMean, "dsp")


@offers(ReduceSum, ("dsp",), rank=200)
def sum_dsp(site: Site[ReduceSumAttrs]) -> Kernel | None:
    return _sum(site, ReduceSum, "dsp")


# Matrix products of int16: four columns of the right side are packed at run time, then every row meets them.

COLUMNS: Final = 4  # Columns at a time.
ELEMENT: Final = 2  # Bytes of an element.


def _offer(family: str, suffix: str, requires: tuple[str, ...], unit: int, rank: int, *, filled: bool = False) -> None:
    """Registers a family's kernel, which packs columns by ``unit`` elements; ``filled``: rows have whole units, too.
    Scratch memory holds the four packed columns and a copy of a row."""

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


# Float layers with weights of half precision that are stored as float32 where speed is favoured: nothing widens them
# at run time.


@offers(Conv2dFloat, (), favour=Favour.speed, rank=400)
def conv2d(site: Site[Any]) -> Kernel | None:
    return wide_kernel(site)


@offers(FullyConnectedFloat, (), favour=Favour.speed, rank=400)
def fully_connected(site: Site[FloatSumAttrs]) -> Kernel | None:
    return wide_kernel(as_pixels(site)) if is_kernels(site) else None
