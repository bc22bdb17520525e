"""Simplifies the imported module without changing what it computes: dead code, constants, spare channels.

Dropping channels takes most of this module. Three steps find what can go, all on the exact integers of the model:

1. `known_channels` goes forwards from the inputs and finds channels that hold one number whatever the input.
2. `needed_channels` goes backwards from the outputs and finds the fewest channels that readers can do with. A reader
   needs no channel with weights of zero alone, and none of step 1 whose share of every sum its bias can take in.
3. `DropChannels` cuts the others out of weights, and adds the shares of dropped channels to biases.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from uaccel import tvm_api
from uaccel.errors import ModelError
from uaccel.model import Array
from uaccel.ops import operator as operators
from uaccel.ops.exact import requantize_numpy
from uaccel.ops.operator import constant, info_of, name_of, operator_of
from uaccel.partition.passes.functions import FoldFunctions
from uaccel.partition.passes.padding import FoldPadding
from uaccel.tvm_api import is_call, is_var, relax
from uaccel.tvm_api.executor import computed

# What the bindings of ``main`` do with channels, the last axis of their tensors: mix them, or keep them apart.

Mask: TypeAlias = NDArray[np.bool_]
Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class MixingLayer:
    """Describes a layer with constant weights. Where it mixes channels, it can make fewer than it reads."""

    var: Any
    source: Any
    operator: operators.IntegerOperator[Any]
    attrs: Any
    weights: Array
    bias: Array
    multiplier: Array
    shift: Array

    @property
    def mixes(self) -> bool:
        """Says whether every output channel reads every input channel; else each reads its own."""
        return self.operator.channels is operators.Channels.MIXED

    @property
    def bordered(self) -> bool:
        """Says whether some windows see zero points around the input."""
        return any(getattr(self.attrs, "padding", ()))

    @cached_property
    def taps(self) -> Integers:
        """Returns weights as (output channel, tap, input channel); as (tap, channel) where channels do not mix."""
        wide = self.weights.astype(np.int64)
        outputs, inputs = self.weights.shape[0], self.weights.shape[-1]
        return wide.reshape(outputs, -1, inputs) if self.mixes else wide.reshape(-1, inputs)


@dataclass(frozen=True, eq=False)
class ElementwiseChannels:
    """Describes an operator whose output channel c depends on channel c of its sources and on no other."""

    var: Any
    sources: tuple[Any, ...]
    call: Any

    @property
    def is_reshape(self) -> bool:
        return name_of(self.call) == operators.RESHAPE


Step: TypeAlias = MixingLayer | ElementwiseChannels
Steps: TypeAlias = dict[Any, Step]  # By variable, in order of execution.


def steps_of(module: Any) -> Steps:
    """Collects the bindings of ``main`` that treat channels in one of these ways."""
    found = ((var, _step_of(var, expr)) for var, expr in tvm_api.main_bindings(module)[1])
    return {var: step for var, step in found if step is not None}


def _step_of(var: Any, expr: Any) -> Step | None:
    """Describes what a binding does with channels; None where it reads them in a way of its own."""
    if not tvm_api.is_operator_call(expr):
        return None
    operator = operator_of(expr)
    if operator is not None and operator.channels is not None and operator.weighted:
        return _weighted(var, expr, operator)
    if name_of(expr) == operators.RESHAPE or (operator is not None and operator.channels is operators.Channels.APART):
        source = expr.args[0]
        return (
            ElementwiseChannels(var, (source,), expr)
            if is_var(source) and channels_of(source) == channels_of(var)
            else None
        )
    return _elementwise(var, expr) if operator is not None and operator.elementwise else None


def _weighted(var: Any, call: Any, operator: operators.IntegerOperator[Any]) -> MixingLayer | None:
    source, *constants = call.args
    if not is_var(source) or not all(tvm_api.is_constant(arg) for arg in constants):
        return None
    step = MixingLayer(var, source, operator, operator.attrs_of(call), *(arg.value.numpy() for arg in constants))
    plain = getattr(step.attrs, "groups", 1) == 1 if step.mixes else step.weights.shape[-1] == channels_of(source)
    return step if plain else None


def _elementwise(var: Any, call: Any) -> ElementwiseChannels | None:
    """Describes an elementwise call of one tensor and tables, or of tensors of one shape; None for others. A broadcast
    tensor has other channels. Floats are left out, since channels are known as integers."""
    sources = tuple(arg for arg in call.args if is_var(arg))
    tables = (
        [arg for arg in call.args[1:] if tvm_api.is_constant(arg)]
        if operators.elementwise_of(call) is operators.Elementwise.FIRST
        else []
    )
    complete = bool(sources) and len(sources) + len(tables) == len(call.args)
    result = info_of(var)
    infos = (result, *map(info_of, sources))
    alike = all(info.shape == result.shape and info.dtype not in operators.FLOATS for info in infos)
    return ElementwiseChannels(var, sources, call) if complete and result.shape and alike else None


def channels_of(value: Any) -> int:
    """Returns the extent of the last axis; 1 for a tensor of no dimensions."""
    return info_of(value).shape[-1] if info_of(value).shape else 1


def sources_of(step: Step) -> tuple[Any, ...]:
    return (step.source,) if isinstance(step, MixingLayer) else step.sources


# Constant folding: calls whose arguments are all constants are executed by TVM and become constants.
#
# A small file may ask for much, so what folding may take is bounded: bytes of results, steps of a call, seconds.

MOST_BYTES: Final = 1 << 28  # Bytes of all results of a round.
# CPU seconds. A call takes as long as compiling it, some 50 ms, however small; sensible models have one a convolution.
MOST_SECONDS: Final = 30.0
# Elements of a result times those of its largest operand: no operator goes through an operand more often than that.
MOST_STEPS: Final = 1 << 42


@dataclass(frozen=True)
class FoldConstants:
    """Folds constants. Afterwards no call has constants alone for arguments, unless its result is a tuple."""

    name: str = "fold_constants"

    def __call__(self, module: Any) -> Any:
        return _folded(module, time.process_time() + MOST_SECONDS)


AT_ONCE: Final = 32  # Calls that are compiled together: a program for each would take ten times as long.


def _folded(module: Any, end: float) -> Any:
    """Puts constants in the places of all that is computed from constants alone, until the CPU clock reads ``end``."""
    calls, depths = _foldable(module)
    if not calls:
        return module
    for depth in set(depths.values()):
        _check_effort({var: call for var, call in calls.items() if depths[var] == depth})
    known: dict[Any, Any] = {}
    for first in range(0, len(calls), AT_ONCE):
        if time.process_time() > end:
            raise ModelError(
                f"what the model computes from constants alone takes more than {MOST_SECONDS:g} s of a processor; "
                "compute it before you export the model"
            )
        together = [*calls.items()][first : first + AT_ONCE]
        made = computed({var: tvm_api.relax_substitute(call, known) for var, call in together})
        known |= {var: constant(value) for var, value in made.items()}
    return tvm_api.rebuild_main(module, lambda var, expr: known.get(var, expr))


def _foldable(module: Any) -> tuple[dict[Any, Any], dict[Any, int]]:
    """Finds the calls that read constants and each other alone, in order of execution, and how deep each is in them."""
    calls: dict[Any, Any] = {}
    depths: dict[Any, int] = {}
    for var, expr in tvm_api.main_bindings(module)[1]:
        if _may_fold(var, expr):
            read = [arg for arg in _arguments(expr) if is_var(arg) or tvm_api.is_constant(arg)]
            if read and all(tvm_api.is_constant(arg) or arg in calls for arg in read):
                calls[var] = expr
                depths[var] = 1 + max(depths.get(arg, 0) for arg in read)
    return calls, depths


def _check_effort(calls: Mapping[Any, Any]) -> None:
    """Refuses calls whose results take too much memory, or too many steps."""
    made = 0
    for var, expr in calls.items():
        info = info_of(var)
        made += info.size
        widest = max((_elements(arg) for arg in _arguments(expr)), default=1)
        if made > MOST_BYTES or info.elements * widest > MOST_STEPS:
            raise ModelError(
                f"{var.name} computes {info} from constants alone, which is too much to do while compiling; "
                "compute it before you export the model"
            )


def _elements(arg: Any) -> int:
    return info_of(arg).elements if tvm_api.is_constant(arg) or is_var(arg) else 1


def _arguments(expr: Any) -> list[Any]:
    return [entry for arg in expr.args for entry in (arg.fields if tvm_api.is_tuple(arg) else [arg])]


def _may_fold(var: Any, expr: Any) -> bool:
    """Says whether a binding is a call with one tensor as its result, which may be executed here."""
    if not is_call(expr) or hasattr(var.ty, "fields"):
        return False
    operator = operator_of(expr)
    return operator is None or operator.foldable


def evaluate(call: Any) -> Array:
    """Executes a call whose arguments are constants."""
    return computed({call: call})[call]


# Known channels: those that hold one number in every element, whatever the model's inputs. One pass forwards finds
# them, as bindings stand in order of execution.


@dataclass(frozen=True, eq=False)
class ConstantChannels:
    """Says of each channel of a value whether it is known, and its number, which means nothing where it is not."""

    mask: Mask
    number: Integers


def nothing_known(channels: int) -> ConstantChannels:
    return ConstantChannels(np.zeros(channels, np.bool_), np.zeros(channels, np.int64))


def known_channels(steps: Steps) -> Mapping[Any, ConstantChannels]:
    """Finds the known channels by variable; a value that is missing has none."""
    known: dict[Any, ConstantChannels] = {}
    for var, step in steps.items():
        found = _of_weighted(step, known) if isinstance(step, MixingLayer) else _of_linked(step, known)
        if found.mask.any():
            known[var] = found
    return known


def offsets(step: MixingLayer, known: Mapping[Any, ConstantChannels]) -> ConstantChannels:
    """Returns the input channels that add the same to every output element, and what they hold above the zero point.
    With padding only channels that hold the zero point do: others add less where the window sees the border."""
    source = known.get(step.source) or nothing_known(channels_of(step.source))
    offset = source.number - step.attrs.input_zero_point
    return ConstantChannels(source.mask & ((offset == 0) | (not step.bordered)), np.where(source.mask, offset, 0))


def _of_weighted(step: MixingLayer, known: Mapping[Any, ConstantChannels]) -> ConstantChannels:
    """Finds the output channels whose input channels are all known, or have weights of zero. Their sum is the bias and,
    over all taps, the weights times (number - zero point); the output stage makes the number of it. A channel whose sum
    leaves 32 bits is taken to be unknown."""
    if step.bias.dtype != np.int32:
        return nothing_known(len(step.bias))
    source = offsets(step, known)
    read = (step.taps != 0).any(axis=-2)
    mask = ~(read & ~source.mask).any(axis=-1) if step.mixes else ~read | source.mask
    if not mask.any():
        return nothing_known(len(mask))
    sums = step.taps.sum(axis=-2) * np.where(source.mask, source.number, 0)
    total = step.bias.astype(np.int64) + (sums.sum(axis=-1) if step.mixes else sums)
    limits = np.iinfo(np.int32)
    mask &= (total >= limits.min) & (total <= limits.max)
    number = requantize_numpy(np.where(mask, total, 0), step.multiplier, step.shift, step.attrs.rounding)
    finished = number + step.attrs.output_zero_point
    return ConstantChannels(mask, np.clip(finished, step.attrs.clamp_min, step.attrs.clamp_max))


def _of_linked(step: ElementwiseChannels, known: Mapping[Any, ConstantChannels]) -> ConstantChannels:
    """Finds the channels that all sources know, and executes the operator on one element of each."""
    sources = [known.get(source) for source in step.sources]
    present = [source for source in sources if source is not None]
    if len(present) < len(sources):
        return nothing_known(channels_of(step.var))
    mask: Mask = np.logical_and.reduce([source.mask for source in present])
    if not mask.any() or step.is_reshape:
        return ConstantChannels(mask, present[0].number)
    operator = operator_of(step.call)
    if operator is not None and operator.keeps_number:
        attrs: Any = operator.attrs_of(step.call)
        return ConstantChannels(mask, np.clip(present[0].number, attrs.clamp_min, attrs.clamp_max))
    return ConstantChannels(mask, _executed(step, mask, present))


def _executed(step: ElementwiseChannels, mask: Mask, present: list[ConstantChannels]) -> Integers:
    numbers = iter(present)
    arguments = []
    for arg in step.call.args:
        if is_var(arg):
            values = np.where(mask, next(numbers).number, 0).astype(info_of(arg).dtype)
            arg = constant(values.reshape((1,) * (len(info_of(arg).shape) - 1) + values.shape))
        arguments.append(arg)
    result = evaluate(relax.Call(step.call.op, arguments, step.call.attrs, step.call.ty_args))
    return np.asarray(result, np.int64).reshape(-1)


# Needed channels: the least sets of channels that let every reader compute what it did.
#
# Values that keep channels apart from each other (by elementwise operators, depthwise layers, reshapes) must lose the
# same channels, so they share one mask: a union-find structure groups them. Masks begin empty but for fixed values, and
# channels are only ever added, until no reader asks for more. That ends, and is the least solution but for fillers.


@dataclass(frozen=True, eq=False)
class NeededChannels:
    """Holds the channels that stay: a mask for each group, and the group of each value."""

    masks: Mapping[Any, Mask]
    groups: Mapping[Any, Any]

    def stay(self, value: Any) -> Mask:
        """Returns the channels of a value that stay; all of them where no step reads or makes it."""
        group = self.groups.get(value)
        return np.ones(channels_of(value), np.bool_) if group is None else self.masks[group]


def needed_channels(
    steps: Steps, fixed: Iterable[Any], known: Mapping[Any, ConstantChannels], multiple: int
) -> NeededChannels:
    """Finds the fewest channels that every reader can do with, filled up to ``multiple``; all of the ``fixed`` values.
    Filling up may make a reader need more, so both steps repeat until neither adds a channel."""
    groups = _groups(steps)
    masks = {group: np.zeros(channels_of(group), np.bool_) for group in groups.values()}
    needs = NeededChannels(masks, groups)
    for value in fixed:
        needs.stay(value)[:] = True
    folded = {step.var: foldable(step, known) for step in steps.values() if isinstance(step, MixingLayer)}
    while _read(steps, needs, folded) or _filled_up(masks.values(), multiple):
        pass
    return needs


def foldable(step: MixingLayer, known: Mapping[Any, ConstantChannels]) -> Mask:
    """Returns the input channels whose share can go into the bias: all known ones, or none. Bias and the shares of all
    known channels, each by its magnitude, must fit 32 bits: then any of them may be dropped, whichever the search
    decides on, and no bias overflows."""
    source = offsets(step, known)
    none = np.zeros(len(source.mask), np.bool_)
    if not step.mixes or step.bias.dtype != np.int32 or not source.mask.any():
        return none
    shares = np.abs(step.taps.sum(axis=1) * source.number)[:, source.mask].sum(axis=1)
    fits = (np.abs(step.bias.astype(np.int64)) + shares <= np.iinfo(np.int32).max).all()
    return source.mask if fits else none


def _groups(steps: Steps) -> dict[Any, Any]:
    """Returns, for each value that a step reads or makes, the value that stands for its group."""
    parent: dict[Any, Any] = {}

    def find(value: Any) -> Any:
        parent.setdefault(value, value)
        while parent[value] is not value:
            parent[value] = value = parent[parent[value]]
        return value

    for step in steps.values():
        for source in sources_of(step):
            roots = find(source), find(step.var)
            if isinstance(step, ElementwiseChannels) or not step.mixes:
                parent[roots[0]] = roots[1]
    return {value: find(value) for value in parent}


def _read(steps: Steps, needs: NeededChannels, folded: Mapping[Any, Mask]) -> bool:
    """Adds what the layers that mix channels need of their sources; returns whether that was more than before. It goes
    backwards, so that what a reader needs is settled, as a rule, before its source's maker is asked."""
    changed = False
    for step in reversed(steps.values()):
        if isinstance(step, ElementwiseChannels) or not step.mixes:
            continue
        read = (step.taps[needs.stay(step.var)] != 0).any(axis=(0, 1)) & ~folded[step.var]
        stay = needs.stay(step.source)
        changed |= bool((read & ~stay).any())
        stay |= read
    return changed


def _filled_up(masks: Iterable[Mask], multiple: int) -> bool:
    """Keeps the first spare channels until counts are multiples, and not 0; returns whether any was added."""
    changed = False
    for mask in masks:
        count = max(1, int(mask.sum()))
        spare = np.flatnonzero(~mask)[: -(-count // multiple) * multiple - int(mask.sum())]
        mask[spare] = True
        changed |= len(spare) > 0
    return changed


# Spare channels are cut out of weights and tensors.


@dataclass(frozen=True)
class DropChannels:
    """Drops spare channels. Afterwards none is left inside the module, but those that make counts a multiple.

    A channel is spare when it holds one number that its readers' biases can take in, or when nothing needed depends
    on it. Every tensor holds what it did, with channels left out; inputs and outputs keep theirs.
    """

    name: str = "drop_channels"
    multiple: int = 4

    def __call__(self, module: Any) -> Any:
        steps = steps_of(module)
        known = known_channels(steps)
        needs = needed_channels(steps, _fixed(module, steps), known, self.multiple)
        if all(mask.all() for mask in needs.masks.values()):
            return module

        def change(var: Any, expr: Any) -> Any:
            step = steps.get(var)
            if step is None:
                return expr
            return _cut(step, expr, needs, known) if isinstance(step, MixingLayer) else _cut_shape(step, expr, needs)

        return tvm_api.rebuild_main(module, change)


def _fixed(module: Any, steps: Steps) -> list[Any]:
    """Lists the values that keep all of their channels: inputs and outputs, and what other operators read or make."""
    parameters, bindings = tvm_api.main_bindings(module)
    outside = [*parameters, *tvm_api.variables(tvm_api.main_result(module))]
    for var, expr in bindings:
        if var not in steps:
            outside += [var, *tvm_api.variables(expr)]
    involved = {value for step in steps.values() for value in (step.var, *sources_of(step))}
    return [value for value in outside if value in involved]


def _cut(step: MixingLayer, call: Any, needs: NeededChannels, known: Mapping[Any, ConstantChannels]) -> Any:
    """Makes the layer with the output channels that stay, of the input channels that stay."""
    outputs, inputs = needs.stay(step.var), needs.stay(step.source)
    if outputs.all() and inputs.all():
        return call
    weights = step.weights[outputs][..., inputs] if step.mixes else step.weights[..., outputs]
    per_channel = (_with_dropped(step, inputs, known), step.multiplier, step.shift)
    attrs = step.attrs if step.mixes else replace(step.attrs, groups=int(outputs.sum()))
    constants = [constant(weights), *(constant(values[outputs]) for values in per_channel)]
    return step.operator(call.args[0], *constants, attrs=attrs)


def _with_dropped(step: MixingLayer, inputs: NDArray[np.bool_], known: Mapping[Any, ConstantChannels]) -> Array:
    """Returns the bias with what dropped input channels added to every sum."""
    dropped = foldable(step, known) & ~inputs
    if not dropped.any():
        return step.bias
    shares = step.taps.sum(axis=1)[:, dropped] @ offsets(step, known).number[dropped]
    return np.asarray(step.bias + shares, step.bias.dtype)


def _cut_shape(step: ElementwiseChannels, call: Any, needs: NeededChannels) -> Any:
    """Keeps the call, whose type is inferred anew; a reshape states its shape, and gets another one."""
    stay = needs.stay(step.var)
    if not step.is_reshape or stay.all():
        return call
    return relax.op.reshape(call.args[0], (*info_of(step.var).shape[:-1], int(stay.sum())))


# Dead code.


@dataclass(frozen=True)
class RemoveDeadCode:
    """Removes bindings that nothing reads. Afterwards every binding is read by another one or by the result."""

    name: str = "remove_dead_code"

    def __call__(self, module: Any) -> Any:
        return relax.transform.DeadCodeElimination(["main"])(module)


# The passes and their order: constants that dead code computed are not folded, what nothing reads any more goes,
# and channels are dropped last, when all weights are constants.


class Pass(Protocol):
    """Takes a normalised module and returns a normalised module that computes the same."""

    @property
    def name(self) -> str: ...
    def __call__(self, module: Any) -> Any: ...


PASSES: Sequence[Pass] = (
    RemoveDeadCode(),
    FoldConstants(),
    FoldFunctions(),
    FoldPadding(),
    RemoveDeadCode(),
    DropChannels(),
)


def simplify(module: Any, *, drops: bool = True) -> Any:
    """Runs all passes in order; without ``drops`` spare channels stay."""
    for step in PASSES if drops else PASSES[:-1]:
        module = step(module)
    return module
