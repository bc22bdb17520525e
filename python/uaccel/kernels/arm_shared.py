"""Offers what Helium and the DSP extension compute alike: pools, sums and means, int16 matrix products.

Also offers, for any CPU, float layers whose half-precision weights are stored as float32 where speed is favoured.
"""

from __future__ import annotations

from typing import Final

from uaccel.kernels.arm_helium_elementwise import offer_floats
from uaccel.kernels.dot_products import check_depth
from uaccel.kernels.registry import EMBEDDED, DeclinedError, check_channels, check_type, offers
from uaccel.ops.conv_float import wide_kernel
from uaccel.ops.exact import TFLITE
from uaccel.ops.kernel import Kernel, ParameterValue, Scratch, dtype_suffix
from uaccel.ops.matmul import BatchMatmul, BatchMatmulAttrs, matrix
from uaccel.ops.operator import Site, get
from uaccel.ops.pool import AveragePool2d, MaxPool2d, PoolAttrs, pool_kernel
from uaccel.ops.reduce import ReduceMean, ReduceSum, ReduceSumAttrs, loop_parameters, reduced_elements
from uaccel.util.favour import Favour

# Pools: the portable call with another function, where that is exact.

LARGEST_ROW: Final = 255  # Bytes of a window's row, whose sum fits 16 bits: 255 * 128 < 2**15.
LEAST_CHANNELS: Final = 4  # The DSP extension's kernels take four at a time; the last four may overlap those before.


def _offer_pools(feature: str, rank: int, least: int = 1) -> None:
    """Registers the pools of a feature for at least so many channels."""

    def made(what: str, site: Site[PoolAttrs]) -> Kernel:
        check_type(site, "int8", "int16")
        check_channels(site.output.shape[3], least)
        portable = pool_kernel(f"uaccel_{what}_pool_{feature}", site)
        return portable.by(f"arm_{feature}", (feature,), header=f"uaccel_pool_{feature}.h")

    def average(site: Site[PoolAttrs]) -> Kernel:
        row = min(site.attrs.window[1], site.operands[0].info.shape[2])
        if site.output.dtype != "int16" and row > LARGEST_ROW:
            raise DeclinedError(f"its window is {row} wide, and {LARGEST_ROW} is the most", "pool in two steps")
        return made("average", site)

    offers(AveragePool2d, (feature,), rank=rank)(average)
    offers(MaxPool2d, (feature,), rank=rank)(lambda site: made("max", site))


_offer_pools("helium", 100)
_offer_pools("dsp", 200, LEAST_CHANNELS)


# Sums and means: the portable call with another function, where what is added up lies row by row.

# Elements of a row. The DSP extension's kernel takes four at a time; the last four may overlap those before.
LEAST_NEIGHBOURS: Final = {"helium": 1, "dsp": 4}
Sum = type[ReduceMean] | type[ReduceSum]


def _sum(site: Site[ReduceSumAttrs], operator: Sum, feature: str) -> Kernel:
    """Makes the kernel where what is added up lies row by row, as pixels do, and rounding is TFLite's."""
    shape, attrs = site.operands[0].info.shape, site.attrs
    loops = loop_parameters(shape, attrs.axes)
    rows = loops["reduced_inner"] == loops["inner"] == 1 and loops["middle"] >= LEAST_NEIGHBOURS[feature]
    multiplier, shift = operator().factor(attrs, reduced_elements(shape, attrs.axes))
    exact = attrs.rounding == TFLITE and multiplier >= 0 and shift <= 0
    check_type(site, "int8", "int16")
    if not rows:
        raise DeclinedError(
            "what it adds up lies side by side, or is too little", "reduce outer axes, with channels last"
        )
    if not exact:
        raise DeclinedError(
            "its sums are scaled up, or rounded in single precision", "quantise with a larger output scale"
        )
    portable = get(operator).kernels(site)[0]
    function = f"uaccel_reduce_sum_{feature}_{dtype_suffix(site.output.dtype)}"
    return portable.by(f"arm_{feature}", (feature,), function=function, header=f"uaccel_pool_{feature}.h")


def _offer_sums(operator: Sum) -> None:
    offers(operator, ("helium",), rank=100)(lambda site: _sum(site, operator, "helium"))
    offers(operator, ("dsp",), rank=200)(lambda site: _sum(site, operator, "dsp"))


_offer_sums(ReduceMean)
_offer_sums(ReduceSum)


# Matrix products of int16: four columns of the right side are packed at run time, then every row meets them.

COLUMNS: Final = 4  # Columns at a time.
ELEMENT: Final = 2  # Bytes of an element.


def _offer(family: str, suffix: str, requires: tuple[str, ...], unit: int, rank: int, *, filled: bool = False) -> None:
    """Registers a family's kernel, which packs columns by ``unit`` elements; ``filled``: rows have whole units, too.
    Scratch memory holds the four packed columns and a copy of a row."""

    @offers(BatchMatmul, requires or EMBEDDED, rank=rank)
    def matmul16(site: Site[BatchMatmulAttrs]) -> Kernel:
        lhs, attrs = site.operands[0].info, site.attrs
        _, depth = matrix(lhs.shape, attrs.adj_x)
        points = (attrs.lhs_zero_point, attrs.rhs_zero_point)
        check_type(site, "int16")
        check_depth(depth)
        if attrs.rounding != TFLITE or any(points):
            raise DeclinedError(
                "its int16 elements have a zero point, or single precision", "quantise int16 symmetrically"
            )
        (portable,) = BatchMatmul().kernels(site)
        (call,) = portable.calls
        whole = -(-depth // unit) * unit
        parameters: dict[str, ParameterValue] = {f"layer.{name}": value for name, value in call.parameters.items()}
        return portable.by(
            family,
            requires,
            ELEMENT * (COLUMNS + 1) * whole,
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


_offer("arm_helium", "helium", ("helium",), 8, 250)
_offer("arm_dsp", "dsp", ("dsp",), 2, 260, filled=True)
_offer("blocked", "blocked", (), 1, 400)


# Float layers with weights of half precision that are stored as float32 where speed is favoured: nothing widens them
# at run time.


offer_floats((), wide_kernel, Favour.speed, 400)
