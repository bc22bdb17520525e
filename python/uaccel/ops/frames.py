"""Streams of frames: samples that come later, and frames that overlap and are added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import exact
from uaccel.ops.base import Attributes, IntegerOperator, register, require
from uaccel.ops.spectrum import NoAttrs
from uaccel.tvm_api import te, tirx
from uaccel.tvm_api.loops import computed_once, count_to, written_by_loops


@register
class Delay(IntegerOperator[NoAttrs]):
    """Rows of what came so many samples ago: a state of rows of the delay's length, and what it becomes."""

    name = "delay"
    arguments = ("input", "state")

    def infer(self, inputs: Sequence[TensorInfo], attrs: NoAttrs) -> tuple[TensorInfo, ...]:
        data, state = inputs
        fits = state.dtype == data.dtype == "int16" and state.shape[:-1] == data.shape[:-1]
        require(fits, f"delay: state {state} for {data}, wanted int16")
        return data, state

    def meaning(self, inputs: Sequence[Any], attrs: NoAttrs) -> Any:
        data, state = inputs
        size, length = int(data.shape[-1]), int(state.shape[-1])

        def sample(index: Sequence[Any], at: Any) -> Any:
            """Of the state, and behind it the input."""
            late = state(*index[:-1], tirx.min(at, length - 1))
            return tirx.Select(at < length, late, data(*index[:-1], tirx.max(at - length, 0)))

        output = te.compute(data.shape, lambda *index: sample(index, index[-1]), name=self.name)
        after = te.compute(state.shape, lambda *index: sample(index, index[-1] + size), name="state")
        return [output, after]


@dataclass(frozen=True)
class OverlapAddAttrs(Attributes):
    """``step`` samples of each frame are complete when it was added."""

    step: int


@register
class OverlapAdd(IntegerOperator[OverlapAddAttrs]):
    """Frames [..., frames, size] onto a state [..., size], saturated where they are int16."""

    name = "overlap_add"
    arguments = ("input", "state")

    def infer(self, inputs: Sequence[TensorInfo], attrs: OverlapAddAttrs) -> tuple[TensorInfo, ...]:
        data, state = inputs
        fits = len(data.shape) > 1 and state == TensorInfo((*data.shape[:-2], data.shape[-1]), data.dtype)
        require(fits and data.dtype in ("int16", "float32"), f"overlap_add: state {state} for {data}")
        require(0 < attrs.step <= data.shape[-1], f"overlap_add: a step of {attrs.step} for {data}")
        return TensorInfo((*data.shape[:-2], data.shape[-2] * attrs.step), data.dtype), state

    def meaning(self, inputs: Sequence[Any], attrs: OverlapAddAttrs) -> Any:
        data = exact.info(inputs[0])
        results = [(info.shape, info.dtype) for info in self.infer([exact.info(each) for each in inputs], attrs)]
        frames, size = data.shape[-2:]
        rest = size - attrs.step

        def write(samples: Any, before: Any, output: Any, after: Any) -> None:
            rows = data.elements // (frames * size)
            with count_to(rows * size) as i:
                after[i] = before[i]
            with count_to(rows) as row, count_to(frames) as frame:
                number, start = row * frames + frame, row * size
                with count_to(size) as i:
                    after[start + i] = computed_once(_sum(samples[number * size + i], after[start + i], data.dtype))
                with count_to(attrs.step) as i:
                    output[number * attrs.step + i] = after[start + i]
                if rest:
                    with count_to(rest) as i:
                        after[start + i] = after[start + attrs.step + i]
                with count_to(attrs.step) as i:
                    after[start + rest + i] = tirx.const(0, data.dtype)

        return written_by_loops(results, list(inputs), write, self.name)


def _sum(one: Any, other: Any, dtype: str) -> Any:
    if dtype != "int16":
        return one + other
    return exact.clamp(exact.i32(one) + exact.i32(other), -32768, 32767).astype("int16")


@dataclass(frozen=True)
class FramerAttrs(Attributes):
    """Frames of ``size`` samples, each ``step`` after the one before."""

    size: int
    step: int


@register
class Framer(IntegerOperator[FramerAttrs]):
    """Frames that overlap, of a stream whose last ``size - step`` samples are the state; all are complete."""

    name = "framer"
    arguments = ("input", "state")

    def infer(self, inputs: Sequence[TensorInfo], attrs: FramerAttrs) -> tuple[TensorInfo, ...]:
        data, state = inputs
        overlap = attrs.size - attrs.step
        fits = state == TensorInfo((*data.shape[:-1], overlap), "int16") and data.dtype == "int16"
        require(fits and attrs.step > 0, f"framer: state {state} for {data}, frames of {attrs.size}")
        require(data.shape[-1] % attrs.step == 0, f"framer: {data} holds no whole steps of {attrs.step}")
        frames = TensorInfo((*data.shape[:-1], data.shape[-1] // attrs.step, attrs.size), data.dtype)
        return frames, TensorInfo((), "bool"), state

    def meaning(self, inputs: Sequence[Any], attrs: FramerAttrs) -> Any:
        data, state = inputs
        frames, valid, after = self.infer([exact.info(each) for each in inputs], attrs)
        overlap = attrs.size - attrs.step

        def sample(index: Sequence[Any], at: Any) -> Any:
            late = state(*index, tirx.min(at, overlap - 1))
            return tirx.Select(at < overlap, late, data(*index, tirx.max(at - overlap, 0)))

        def framed(*index: Any) -> Any:
            return sample(index[:-2], index[-2] * attrs.step + index[-1])

        moved = int(data.shape[-1])
        return [
            te.compute(frames.shape, framed, name=self.name),
            te.compute(valid.shape, lambda: tirx.const(True, "bool"), name="valid"),
            te.compute(after.shape, lambda *index: sample(index[:-1], index[-1] + moved), name="state"),
        ]
