"""What the elementwise operators of two inputs share: NumPy's broadcasting, as a type, as a meaning and as C loops."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeVar

from uaccel.model import Shape, TensorInfo
from uaccel.ops.base import Attributes, Elementwise, IntegerOperator, Operand, Site, operand_arguments, require
from uaccel.ops.kernel import Kernel, Output, ParameterValue, dtype_suffix, portable
from uaccel.tvm_api import te

LOOPS = 6  # nested loops of the C kernels; the innermost runs over a row

A = TypeVar("A", bound=Attributes)


def broadcast_shape(first: Shape, second: Shape) -> Shape:
    """The shape of the result; TypeError where the two do not go together."""
    rank = max(len(first), len(second))
    pairs = list(zip(_extended(first, rank), _extended(second, rank), strict=True))
    fits = all(a == b or 1 in (a, b) for a, b in pairs)
    require(fits, f"the shapes {list(first)} and {list(second)} cannot be broadcast")
    return tuple(max(a, b) if 0 not in (a, b) else 0 for a, b in pairs)


def _extended(shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + shape


@dataclass(frozen=True)
class Loops:
    """Outermost first. A stride of 0 repeats; in the innermost loop strides are 0 or 1."""

    extents: tuple[int, ...]
    strides1: tuple[int, ...]
    strides2: tuple[int, ...]


def collapse(first: Shape, second: Shape) -> Loops:
    """As few loops as the broadcast needs: axes along which both inputs step alike become one."""
    output = broadcast_shape(first, second)
    axes = zip(output, _strides(first, len(output)), _strides(second, len(output)), strict=True)
    merged: list[tuple[int, int, int]] = []
    for extent, stride1, stride2 in axes:
        if extent == 1:
            continue
        if merged and merged[-1][1:] == (stride1 * extent, stride2 * extent):
            extent *= merged.pop()[0]
        merged.append((extent, stride1, stride2))
    loops = merged or [(1, 0, 0)]
    extents, strides1, strides2 = zip(*loops, strict=True)
    return Loops(tuple(extents), tuple(strides1), tuple(strides2))


def _strides(shape: Shape, rank: int) -> tuple[int, ...]:
    """In elements; 0 where the axis is repeated."""
    strides, step = [], 1
    for extent in reversed(_extended(shape, rank)):
        strides.append(0 if extent == 1 else step)
        step *= extent
    return tuple(reversed(strides))


class Broadcast(IntegerOperator[A]):
    """An operator whose every output element depends on one element of each input."""

    arguments = ("input1", "input2")
    elementwise = Elementwise.EACH
    kernel: ClassVar[str]
    header: ClassVar[str] = ""

    def parameters(self, attrs: A) -> Mapping[str, ParameterValue]:
        """The fields of the kernel's structure besides the loops."""
        return asdict(attrs)

    def second_dtypes(self, dtype: str) -> tuple[str, ...]:
        """What the second input may be beside a first of ``dtype``."""
        return (dtype,)

    def infer(self, inputs: Sequence[TensorInfo], attrs: A) -> TensorInfo:
        first, second = inputs
        require(second.dtype in self.second_dtypes(first.dtype), f"{self.name}: {second} does not fit {first}")
        loops = len(collapse(first.shape, second.shape).extents)
        require(loops <= LOOPS, f"{self.name}: broadcasting {first} and {second} takes {loops} loops, at most {LOOPS}")
        return TensorInfo(broadcast_shape(first.shape, second.shape), first.dtype)

    def kernels(self, site: Site[A]) -> Sequence[Kernel]:
        first, second = (operand.info for operand in site.operands)
        function = f"{self.kernel}_{dtype_suffix(first.dtype)}"
        parameters = {**loop_parameters(first.shape, second.shape), **self.parameters(site.attrs)}
        arguments = (*operand_arguments(site.operands, ("first", "second")), Output(0))
        shared = places_shared(site, 2)
        return [portable(function, self.kernel, parameters, arguments, header=self.header, inplace=shared)]


class BinaryOperator(Broadcast[A]):
    """One whose meaning takes a step for each input, and one that combines them."""

    def first(self, value: Any, attrs: A) -> Any:
        """What an element of the first input contributes, as a TE expression."""
        return value

    def second(self, value: Any, attrs: A) -> Any:
        """What an element of the second input contributes."""
        return value

    @abc.abstractmethod
    def combine(self, x: Any, y: Any, attrs: A, dtype: str) -> Any:
        """The output element of both contributions."""

    def meaning(self, inputs: Sequence[Any], attrs: A) -> Any:
        shape1, shape2 = (tuple(int(extent) for extent in tensor.shape) for tensor in inputs)
        first = te.compute(shape1, lambda *i: self.first(inputs[0](*i), attrs), name="first")
        second = te.compute(shape2, lambda *i: self.second(inputs[1](*i), attrs), name="second")
        dtype = str(inputs[0].dtype)

        def element(*index: Any) -> Any:
            return self.combine(element_at(first, shape1, index), element_at(second, shape2, index), attrs, dtype)

        return te.compute(broadcast_shape(shape1, shape2), element, name=self.name)


def element_at(tensor: Any, shape: Shape, index: Sequence[Any]) -> Any:
    """The element that broadcasting puts at ``index`` of the output."""
    own = index[len(index) - len(shape) :]
    return tensor(*(0 if extent == 1 else i for extent, i in zip(shape, own, strict=True)))


def loop_parameters(first: Shape, second: Shape) -> dict[str, ParameterValue]:
    """The loops as fields of a kernel's structure, filled up to ``LOOPS`` with loops that run once."""
    loops = collapse(first, second)
    spare = LOOPS - len(loops.extents)
    return {
        "extents": (1,) * spare + loops.extents,
        "strides1": (0,) * spare + loops.strides1,
        "strides2": (0,) * spare + loops.strides2,
    }


def places_shared(site: Site[Any], tensors: int) -> tuple[int, ...]:
    """The run-time inputs, among so many first operands, that the output may lie over: one of the output's size is read
    element by element just before the output is written."""
    pairs = zip(site.input_indices()[:tensors], site.operands, strict=False)
    return tuple(index for index, operand in pairs if index is not None and _same_bytes(operand, site.output))


def _same_bytes(operand: Operand, output: TensorInfo) -> bool:
    return operand.info.elements == output.elements and operand.info.dtype == output.dtype
