"""Defines quantised matrix products, layers whose weights are computed at run time, and products by blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from uaccel.model import Shape, TensorInfo
from uaccel.ops import conv, exact
from uaccel.ops.exact import TFLITE, check_rounding, kernel_suffix
from uaccel.ops.kernel import Kernel, ParameterValue, dtype_suffix, same
from uaccel.ops.operator import Attributes, Channels, IntegerOperator, Site, require
from uaccel.ops.storage import is_int4, nibbles, pack_int4
from uaccel.ops.windows import infer_product, multiplied
from uaccel.tvm_api import te, tirx

# Fully connected: rows of the input times the transposed weights, any input rank.


class FullyConnectedAttrs(conv.Requantised):
    """``weight_bits`` is 4 where four bits hold each weight."""

    weight_bits: int = 8


class FullyConnected(conv.Requantising[FullyConnectedAttrs]):
    """Computes clamp(output_zero_point + requantise(bias + sum, multiplier, shift)) of rows.

    ``sum`` is that of (input - input_zero_point) * weights, input [rows, depth] and weights [units, depth]; the front
    ends flatten other ranks with a reshape. Each unit has a bias, a multiplier and a shift.
    """

    name = "fully_connected"
    channels: ClassVar[Channels | None] = Channels.MIXED

    def infer(self, attrs: FullyConnectedAttrs, *inputs: TensorInfo) -> TensorInfo:
        check_rounding(attrs, self.name)
        return TensorInfo(infer_product(inputs[0], inputs[1], "fully_connected"), inputs[0].dtype)

    def sums(self, data: Any, weights: Any, attrs: FullyConnectedAttrs, dtype: str) -> Any:
        rows, depth = (int(extent) for extent in data.shape)

        def less(side: Any, zero_point: int) -> Any:
            return lambda *index: side(*index).astype(dtype) - exact.const(zero_point, dtype)

        sides = less(data, attrs.input_zero_point), less(weights, getattr(attrs, "weight_zero_point", 0))
        return te.compute((rows, weights.shape[0]), multiplied(*sides, depth), name="accumulated")

    def kernels(self, site: Site[FullyConnectedAttrs]) -> Sequence[Kernel]:
        data, weights = site.operands[0].info, site.operands[1].value
        parameters = {
            "rows": data.shape[0],
            "depth": data.shape[1],
            "units": site.output.shape[1],
            **conv.output_fields(site),
        }
        (kernel,) = self.one_call(
            site, parameters, conv.accumulator_suffix(site), held=conv.folded_constants(site, weights)
        )
        return [pack_int4(kernel, weights) if is_int4(site) else kernel]


# Products of two batches of matrices, either of them computed at run time.

BATCH_AXES = 3  # the kernel has as many loops around a product


class BatchMatmulAttrs(Attributes):
    """``adj_x`` and ``adj_y`` say that a side's matrices lie transposed."""

    adj_x: bool
    adj_y: bool
    lhs_zero_point: int
    rhs_zero_point: int
    output_zero_point: int
    multiplier: int
    shift: int
    rounding: str = TFLITE


def matrix(shape: Shape, transposed: bool) -> tuple[int, int]:
    """Rows and columns of a side as it enters the product."""
    return (shape[-1], shape[-2]) if transposed else (shape[-2], shape[-1])


def batch_extents(shape: Shape, rank: int = BATCH_AXES) -> tuple[int, ...]:
    """The extents before the matrix, with ones in front."""
    return (1,) * (rank - len(shape) + 2) + shape[:-2]


def broadcast_batch(lhs: TensorInfo, rhs: TensorInfo) -> Shape:
    rank = max(len(lhs.shape), len(rhs.shape)) - 2
    pairs = list(zip(batch_extents(lhs.shape, rank), batch_extents(rhs.shape, rank), strict=True))
    require(all(a == b or 1 in (a, b) for a, b in pairs), f"batch_matmul: the batches of {lhs} and {rhs} do not fit")
    return tuple(max(pair) for pair in pairs)


class BatchMatmul(IntegerOperator[BatchMatmulAttrs]):
    """Computes lhs @ rhs with one multiplier for all; axes before the last two are batches, and broadcast."""

    name = "batch_matmul"
    arguments = ("lhs", "rhs")

    def infer(self, attrs: BatchMatmulAttrs, *inputs: TensorInfo) -> TensorInfo:
        lhs, rhs = inputs
        check_rounding(attrs, self.name)
        fits = all(2 <= len(side.shape) <= 2 + BATCH_AXES for side in inputs)
        require(fits, f"batch_matmul: {lhs} and {rhs} have ranks other than 2 to {2 + BATCH_AXES}")
        rows, depth = matrix(lhs.shape, attrs.adj_x)
        other, columns = matrix(rhs.shape, attrs.adj_y)
        require(depth == other, f"batch_matmul: {depth} columns of {lhs} meet {other} rows of {rhs}")
        return TensorInfo((*broadcast_batch(lhs, rhs), rows, columns), lhs.dtype)

    def meaning(self, attrs: BatchMatmulAttrs, *inputs: Any) -> Any:
        lhs, rhs = inputs
        infos = [exact.info(side) for side in inputs]
        output = self.infer(attrs, *infos)
        acc_dtype = "int64" if output.dtype == "int16" else "int32"
        k = te.reduce_axis((0, matrix(infos[0].shape, attrs.adj_x)[1]), name="k")

        def value(side: Any, info: TensorInfo, batch: Sequence[Any], place: tuple[Any, Any], zero: int) -> Any:
            own = batch[len(batch) - len(info.shape) + 2 :]
            index = [0 if extent == 1 else position for position, extent in zip(own, info.shape, strict=False)]
            return side(*index, *place).astype(acc_dtype) - exact.const(zero, acc_dtype)

        def element(*index: Any) -> Any:
            *batch, row, column = index
            left = value(lhs, infos[0], batch, (k, row) if attrs.adj_x else (row, k), attrs.lhs_zero_point)
            right = value(rhs, infos[1], batch, (column, k) if attrs.adj_y else (k, column), attrs.rhs_zero_point)
            return te.sum(left * right, axis=k)

        acc = te.compute(output.shape, element, name="accumulated")
        low, high = exact.limits(output.dtype)
        multiplier, shift = exact.const(attrs.multiplier, "int32"), exact.const(attrs.shift, "int32")

        def finished(*index: Any) -> Any:
            scaled = exact.requantize_as(attrs.rounding, acc(*index), multiplier, shift)
            return exact.finish(scaled, attrs.output_zero_point, low, high, output.dtype)

        return te.compute(output.shape, finished, name="product")

    def kernels(self, site: Site[BatchMatmulAttrs]) -> Sequence[Kernel]:
        attrs, (lhs, rhs) = site.attrs, (operand.info for operand in site.operands)
        rows, depth = matrix(lhs.shape, attrs.adj_x)
        columns = site.output.shape[-1]
        parameters: dict[str, ParameterValue] = {
            "batch": batch_extents(site.output.shape),
            "lhs_batch_step": batch_steps(lhs.shape),
            "rhs_batch_step": batch_steps(rhs.shape),
            "rows": rows,
            "depth": depth,
            "columns": columns,
            "lhs_row_step": 1 if attrs.adj_x else depth,
            "lhs_depth_step": rows if attrs.adj_x else 1,
            "rhs_depth_step": 1 if attrs.adj_y else columns,
            "rhs_column_step": depth if attrs.adj_y else 1,
            **same(attrs, "lhs_zero_point", "rhs_zero_point", "output_zero_point", "multiplier", "shift"),
        }
        return self.one_call(site, parameters, f"{dtype_suffix(lhs.dtype)}{kernel_suffix(attrs)}")

    def macs(self, site: Site[BatchMatmulAttrs]) -> int:
        return site.output.elements * matrix(site.operands[0].info.shape, site.attrs.adj_x)[1]


def batch_steps(shape: Shape) -> tuple[int, ...]:
    """Elements from one matrix to the next along each batch axis, 0 where one serves all."""
    extents = batch_extents(shape)
    size = shape[-2] * shape[-1]
    return tuple(0 if e == 1 else size * math.prod(extents[axis + 1 :]) for axis, e in enumerate(extents))


# Layers whose weights come at run time, or have a zero point: their C is printed from their meaning.

# The second is not called "weights", so that no pass takes it for a constant.
GIVEN = ("input", "given_weights", "bias", "multiplier", "shift")


class Given(IntegerOperator[Any]):
    """Says what is the same of all of them; it stands before the operator with constant weights."""

    arguments: ClassVar[tuple[str, ...]] = GIVEN
    channels: ClassVar[Channels | None] = None

    def kernels(self, site: Site[Any]) -> Sequence[Kernel]:
        return ()


class GivenConv2d(Given, conv.Conv2d):
    """Convolves with weights that are no constant."""

    name = "conv2d_given"

    def macs(self, site: Site[Any]) -> int:
        return site.output.elements * (site.operands[1].info.elements // site.output.shape[3])


class GivenDepthwiseConv2d(Given, conv.DepthwiseConv2d):
    """Convolves channel by channel with weights that are no constant."""

    name = "depthwise_conv2d_given"


class GivenTransposeConv2d(Given, conv.TransposeConv2d):
    """Convolves transposed with weights that are no constant."""

    name = "transpose_conv2d_given"


class GivenFullyConnectedAttrs(FullyConnectedAttrs):
    """``weight_zero_point`` is subtracted from every weight."""

    weight_zero_point: int = 0


class GivenFullyConnected(Given, FullyConnected):
    """Multiplies by weights that are no constant, or that have a zero point."""

    name = "fully_connected_given"
    attributes = GivenFullyConnectedAttrs

    def macs(self, site: Site[FullyConnectedAttrs]) -> int:
        return site.output.elements * site.operands[0].info.shape[1]


# Floats times weights that are small integers, with a scale for each block of a row.

FLOAT: Final = "float32"
INTEGER: Final = "int8"


class BlockAttrs(Attributes):
    """``block`` weights of a row share a scale, the last ones of a row perhaps fewer. ``weight_bits`` hold a weight."""

    block: int
    weight_bits: int


class FullyConnectedBlocks(IntegerOperator[BlockAttrs]):
    """Multiplies rows by rows of weights, each ``(integer - zero point) * scale``, and adds a bias.

    The products of a block are added in their order, then the blocks, each times its scale.
    """

    name = "fully_connected_blocks"
    arguments = ("input", "weights", "scales", "zero_points", "bias")

    def infer(self, attrs: BlockAttrs, data: TensorInfo, weights: TensorInfo, *more: TensorInfo) -> TensorInfo:
        shape, depth = infer_product(data, weights, self.name), weights.shape[1]
        require(data.dtype == FLOAT, f"{self.name}: input {data}, wanted {FLOAT}")
        require(attrs.block > 0, f"{self.name}: blocks of {attrs.block} weights, wanted 1 or more")
        blocks = (shape[1], -(-depth // attrs.block))
        wanted = (TensorInfo(blocks, FLOAT), TensorInfo(blocks, INTEGER), TensorInfo(shape[1:], FLOAT))
        given = f"{self.name}: {', '.join(map(str, [weights, *more]))}"
        wants = f"wanted {INTEGER} weights, then {', '.join(map(str, wanted))}"
        require(more == wanted and weights.dtype == INTEGER, f"{given}; {wants}")
        return TensorInfo(shape, FLOAT)

    def meaning(self, attrs: BlockAttrs, data: Any, weights: Any, scales: Any, zero_points: Any, bias: Any) -> Any:
        (rows, depth), (units, blocks) = exact.info(data).shape, exact.info(scales).shape
        j, b = te.reduce_axis((0, attrs.block), name="j"), te.reduce_axis((0, blocks), name="b")

        def products(n: Any, c: Any, part: Any) -> Any:
            k = part * attrs.block + j
            factor = (exact.i32(weights(c, k)) - exact.i32(zero_points(c, part))).astype(FLOAT)
            value = data(n, k) * factor
            whole = depth % attrs.block == 0
            return te.sum(value if whole else tirx.if_then_else(k < depth, value, exact.real(0)), axis=j)

        parts = te.compute((rows, units, blocks), products, name="parts")
        sums = te.compute((rows, units), lambda n, c: te.sum(parts(n, c, b) * scales(c, b), axis=b), name="sums")
        return te.compute((rows, units), lambda n, c: sums(n, c) + bias(c), name=self.name)

    def kernels(self, site: Site[BlockAttrs]) -> Sequence[Kernel]:
        if any(operand.constant is None for operand in site.operands[1:]):
            return ()
        (rows, depth), weights = site.operands[0].info.shape, site.operands[1].value
        parameters = {"rows": rows, "depth": depth, "units": len(weights), "block": site.attrs.block}
        packs = site.attrs.weight_bits == 4 and site.attrs.block % 2 == 0
        held = {"weights": nibbles(weights)} if packs else {}
        return self.one_call(site, parameters, "int4" if packs else "s8", held=held)
