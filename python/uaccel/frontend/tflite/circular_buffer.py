"""CIRCULAR_BUFFER: the last frames of a stream, the newest last."""

from __future__ import annotations

from uaccel.errors import need
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.checks import need_equal_quantisation
from uaccel.frontend.tflite.convert import Context, Update, converts, need_dtype
from uaccel.frontend.tflite.custom import custom_options, whole_number
from uaccel.frontend.tflite.reader import Operator
from uaccel.frontend.tflite.variables import CIRCULAR_BUFFER
from uaccel.tvm_api import relax

EVERY_FRAME = (5, 13, 25)
"""Numbers of frames that the reference takes for a buffer of every frame, where the options say nothing."""


@converts(CIRCULAR_BUFFER, when=always)
def circular_buffer(context: Context, operator: Operator) -> Update:
    """Its output is a variable tensor, which it moves up by one frame."""
    data, output = operator.required_input(0), operator.outputs[0]
    need_dtype(data, ("int8",), "input")
    need_dtype(output, ("int8",), "output")
    need_equal_quantisation(data, output)
    need(output.index in context.variables, f'output "{output.name}" is no variable tensor')
    shape, kept = data.info.shape, output.info.shape
    fits = len(shape) == len(kept) == 4 and shape[:2] == (1, 1) and kept[0] == 1 and shape[2:] == kept[2:]
    need(fits, f"input {data.info} is no frame of output {output.info}; wanted [1,1,W,C] of [1,N,W,C]")
    default = 1 if kept[1] in EVERY_FRAME else 2
    period = whole_number(custom_options(operator), "cycles_max", default) or default
    need(period == 1, f"what follows it runs once in {period} frames; only cycles_max 1 can be compiled")
    old = context.expr(output)
    rows = relax.op.strided_slice(old, axes=[1], begin=[1], end=[kept[1]]) if kept[1] > 1 else None
    frame = context.expr(data)
    after = frame if rows is None else relax.op.concat([rows, frame], axis=1)
    return Update(after, (output,))
