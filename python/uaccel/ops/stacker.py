"""Features of neighbouring frames in one row, as TensorFlow Lite Micro's stacker makes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require
from uaccel.tvm_api import tirx
from uaccel.tvm_api.loops import computed_once, count_to, local_array, where, written_by_loops

MOST_FRAMES: Final = 1 << 14


@dataclass(frozen=True)
class StackerAttrs(Attributes):
    """``left`` frames before and ``right`` behind each; ``step`` frames from one row to the next."""

    left: int
    right: int
    step: int

    @property
    def frames(self) -> int:
        return self.left + self.right + 1


@register
class Stacker(IntegerOperator[StackerAttrs]):
    """The row, whether it is complete, and the state: how many frames it holds and one, and these frames.

    The first frame stands for those before it. A row that is not complete is zeros.
    """

    name = "stacker"
    arguments = ("input", "state")

    def infer(self, inputs: Sequence[TensorInfo], attrs: StackerAttrs) -> tuple[TensorInfo, ...]:
        data, state = inputs
        fits = min(attrs.left, attrs.right) >= 0 and 0 < attrs.step <= attrs.frames <= MOST_FRAMES
        require(fits, f"stacker: rows of {attrs.frames} frames every {attrs.step}")
        size = data.elements * attrs.frames
        fits = data.dtype == "int16" and state == TensorInfo((size + 1,), "int16")
        require(fits, f"stacker: state {state} for {data}, wanted int16")
        return TensorInfo((size,), "int16"), TensorInfo((), "bool"), state

    def meaning(self, inputs: Sequence[Any], attrs: StackerAttrs) -> Any:
        infos = [exact.info(tensor) for tensor in inputs]
        results = [(info.shape, info.dtype) for info in self.infer(infos, attrs)]
        width, size = infos[0].elements, infos[1].elements - 1

        def write(frame: Any, before: Any, row: Any, valid: Any, after: Any) -> None:
            held = local_array(1, "int32")
            held[0] = tirx.min(exact.i32(before[0]), attrs.frames) - 1
            with count_to(size) as i:
                row[i] = exact.const(0, "int16")
                after[1 + i] = tirx.Select(held[0] < 0, frame[i % width], before[1 + i])
            with where(held[0] < 0):
                held[0] = exact.const(attrs.left, "int32")
            with count_to(width) as i:
                after[1 + held[0] * width + i] = frame[i]
            held[0] = held[0] + 1
            valid[0] = computed_once(held[0] >= attrs.frames)
            with where(held[0] >= attrs.frames):
                held[0] = held[0] - attrs.step
                with count_to(size) as i:
                    row[i] = after[1 + i]
                with count_to(size - attrs.step * width) as i:
                    after[1 + i] = after[1 + attrs.step * width + i]
            after[0] = (held[0] + 1).astype("int16")

        return written_by_loops(results, list(inputs), write, self.name)
