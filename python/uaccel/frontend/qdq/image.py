"""Holds the rule for bilinear resizing; nearest-neighbour resizing only moves elements (``emitter``)."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.qdq.emitter import Emitter, integers_of
from uaccel.frontend.qdq.graph import CHANNELS_LAST, Integers, attributes, shape_of
from uaccel.frontend.qdq.rules import Emit, Island, rule
from uaccel.ops.operator import constant, get
from uaccel.ops.resize import ResizeOnce, positions, resize_once_operands


@rule("relax.image.resize2d")
def bilinear(island: Island) -> Emit | None:
    call, given = island.call, attributes(island.call)
    plain = given.method == "linear" and given.layout == "NCHW" and not any(map(float, given.roi or ()))
    need(plain, f"resizing of the method {given.method}, or of a part of the image")
    grid, shape = island.need_alike(call.args[0]), shape_of(call)
    mode = str(given.coordinate_transformation_mode)
    extents = zip(shape_of(call.args[0])[2:], shape[2:], strict=True)
    places = [positions(mode, before, after) for before, after in extents]
    numbers = grid.quantisation, island.output.quantisation, grid.dtype, (island.low, island.high)
    attrs, tables = resize_once_operands(places, *numbers)

    def emit(emitter: Emitter) -> Integers:
        data = emitter.channels_last(integers_of(emitter, call.args[0], grid))
        expr = get(ResizeOnce)(data, *map(constant, tables), attrs=attrs)
        return emitter.held(expr, shape, island.output, CHANNELS_LAST[4])

    return emit
