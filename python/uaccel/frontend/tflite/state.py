"""Finds the state that lasts between inferences, and converts the operators that read and write it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import Budget
from uaccel.frontend.converters import always
from uaccel.frontend.tflite.checks import need_dtype, need_equal_quantisation
from uaccel.frontend.tflite.converter import Context, Update, Variable, VariableKey, converts
from uaccel.frontend.tflite.reader import DTYPES, Operator, Tensor, TfliteGraph, custom_options, whole_number
from uaccel.model import TensorInfo, TensorSpec
from uaccel.tvm_api import relax

# State: variable tensors, named resource variables, and what some operators remember by themselves.
#
# A resource is used through handles: VAR_HANDLE makes one, READ_VARIABLE and ASSIGN_VARIABLE take it. CALL_ONCE runs a
# subgraph before the first inference, which assigns the variables' first values.

CIRCULAR_BUFFER = "CUSTOM:CIRCULAR_BUFFER"  # Its output is a variable tensor.
SUBTRACTION = "CUSTOM:SignalFilterBankSpectralSubtraction"


def find_variables(graph: TfliteGraph, budget: Budget) -> dict[VariableKey, Variable]:
    """All variables with their first values; one that cannot be understood is left for the walk to refuse."""
    return {**_variable_tensors(graph, budget), **_resources(graph, budget), **_own_states(graph, budget)}


def own_state(operator: Operator) -> VariableKey:
    """The key of a state that an operator keeps and no tensor of the file holds."""
    return "", f"{operator.name}_{operator.index}"


def _own_states(graph: TfliteGraph, budget: Budget) -> dict[VariableKey, Variable]:
    """The states of operators in ``OWN_STATES``; they begin with zero."""
    found: dict[VariableKey, Variable] = {}
    for operator in graph.operators:
        info = OWN_STATES[operator.name](operator) if operator.name in OWN_STATES and operator.outputs else None
        if (
            info is not None
            and info.dtype in DTYPES.values()
            and all(0 < extent < MOST_SAMPLES for extent in info.shape)
        ):
            budget.bytes(info.size)
            spec = TensorSpec(f"state {operator.index}", info)
            found[own_state(operator)] = Variable(spec, np.zeros(info.shape, info.dtype))
    return found


def _of_delay(operator: Operator) -> TensorInfo:
    """The last samples that SignalDelay keeps, for each of the input's other axes."""
    info = operator.outputs[0].info
    length = custom_options(operator).get("delay_length", 0)
    return TensorInfo((*info.shape[:-1], length if isinstance(length, int) else 0), info.dtype)


def _of_framer(operator: Operator) -> TensorInfo:
    """The overlap of two frames that SignalFramer keeps."""
    info, options = operator.required_input(0).info, custom_options(operator)
    size, step = (options.get(name) for name in ("frame_size", "frame_step"))
    overlap = size - step if isinstance(size, int) and isinstance(step, int) else 0
    return TensorInfo((*info.shape[:-1], overlap), info.dtype)


def _of_overlap(operator: Operator) -> TensorInfo:
    """The frame that SignalOverlapAdd keeps."""
    info = operator.required_input(0).info
    return TensorInfo((*info.shape[:-2], info.shape[-1]) if len(info.shape) > 1 else (), info.dtype)


def _of_stacker(operator: Operator) -> TensorInfo:
    """SignalStacker's count of frames, and one row of them."""
    info = operator.outputs[0].info
    return TensorInfo((info.elements + 1,), info.dtype)


# Type and shape of what operators remember and no tensor of the file holds.
OWN_STATES: Mapping[str, Callable[[Operator], TensorInfo]] = {
    SUBTRACTION: lambda operator: operator.outputs[-1].info,
    "CUSTOM:SignalDelay": _of_delay,
    "CUSTOM:SignalFramer": _of_framer,
    "CUSTOM:SignalOverlapAdd": _of_overlap,
    "CUSTOM:SignalStacker": _of_stacker,
}
MOST_SAMPLES = 1 << 20  # Along one axis; an operator whose options ask for more is refused.


def _variable_tensors(graph: TfliteGraph, budget: Budget) -> dict[VariableKey, Variable]:
    """Tensors marked as variable that are read and not computed; a circular buffer reads its own output."""
    read = {tensor.index for operator in graph.operators for tensor in operator.inputs if tensor is not None}
    given = {tensor.index for tensor in graph.inputs}
    given |= {tensor.index for op in graph.operators if op.name != CIRCULAR_BUFFER for tensor in op.outputs}
    read |= {tensor.index for op in graph.operators if op.name == CIRCULAR_BUFFER for tensor in op.outputs}
    return {
        tensor.index: Variable(tensor.spec, _first_value(tensor, budget))
        for tensor in graph.tensors
        if tensor.is_variable and tensor.index in read - given and tensor.info.dtype in DTYPES.values()
    }


def _first_value(tensor: Tensor, budget: Budget) -> NDArray[np.generic]:
    """Zero; for int8 the stored value that means zero."""
    quantised = tensor.info.dtype == "int8" and tensor.quantisation is not None
    return _filled(tensor, tensor.zero_point if quantised else 0, budget)


def _filled(tensor: Tensor, number: int, budget: Budget) -> NDArray[np.generic]:
    """Fills every byte with the number's lowest one, as the reference's memset does."""
    budget.bytes(tensor.info.size)
    return np.full(tensor.info.size, number & 0xFF, np.uint8).view(tensor.info.dtype).reshape(tensor.info.shape)


def _resources(graph: TfliteGraph, budget: Budget) -> dict[VariableKey, Variable]:
    """Resource variables that something assigns, with CALL_ONCE's constant as the first value.

    Without one, every byte is the zero point of the first value that the graph assigns, as in the reference.
    """
    found: dict[VariableKey, Variable] = {}
    starts = [_init_graph(graph, operator) for operator in graph.operators if operator.name == "CALL_ONCE"]
    for part in (graph, *starts):
        for key, value in _assignments(part):
            if key not in found and value.info.dtype in DTYPES.values():
                spec = replace(value.spec, name=_name(key) or value.name)
                found[key] = Variable(spec, _filled(value, value.zero_point if value.quantisation else 0, budget))
    for part in starts:
        for key, value in _assignments(part):
            if key in found and value.data is not None and value.info == found[key].spec.info:
                found[key].initial = value.data
    return found


def _init_graph(graph: TfliteGraph, operator: Operator) -> TfliteGraph:
    return graph.other(operator.option("InitSubgraphIndex"))


def _assignments(graph: TfliteGraph) -> Iterator[tuple[VariableKey, Tensor]]:
    """Yields variable and value of every ASSIGN_VARIABLE."""
    handles = {
        tensor.index: _key(operator)
        for operator in graph.operators
        if operator.name == "VAR_HANDLE"
        for tensor in operator.outputs
    }
    for operator in graph.operators:
        if operator.name == "ASSIGN_VARIABLE":
            handle, value = operator.required_input(0), operator.required_input(1)
            if handle.index in handles:
                yield handles[handle.index], value


def _key(operator: Operator) -> VariableKey:
    container, name = operator.options.Container(), operator.options.SharedName()
    return (container or b"").decode(errors="replace"), (name or b"").decode(errors="replace")


def _name(key: VariableKey) -> str:
    return key[1] if isinstance(key, tuple) else ""


def var_handle(context: Context, _graph: TfliteGraph, operator: Operator) -> None:
    for tensor in operator.outputs:
        context.handles[tensor.index] = _key(operator)


def read_variable(context: Context, _graph: TfliteGraph, operator: Operator) -> None:
    variable, output = _variable(context, operator), operator.outputs[0]
    info = variable.spec.info
    need(info == output.info, f'the file declares "{output.name}" as {output.info}, the variable holds {info}')
    context.exprs[output.index] = variable.expr


def assign_variable(context: Context, _graph: TfliteGraph, operator: Operator) -> None:
    variable, value = _variable(context, operator), operator.required_input(1)
    info = variable.spec.info
    need(info == value.info, f'"{value.name}" is {value.info}, the variable holds {info}')
    variable.expr = context.expr(value)


def _variable(context: Context, operator: Operator) -> Variable:
    handle = operator.required_input(0)
    key = context.handles.get(handle.index)
    need(key is not None, f'"{handle.name}" is no handle of a variable')
    variable = context.variables.get(key) if key is not None else None
    if key is None or variable is None:
        raise ModelError(f'nothing ever assigns the variable "{_name(key or ("", ""))}"')
    return variable


def call_once(context: Context, graph: TfliteGraph, operator: Operator) -> None:
    """Checks that CALL_ONCE assigns nothing but constants, which ``_resources`` has read already."""
    number = operator.option("InitSubgraphIndex")
    need(number != 0, "it calls the subgraph that it stands in")
    early = [other for other in graph.operators[: operator.index] if other.name in ("READ_VARIABLE", "ASSIGN_VARIABLE")]
    need(not early, "it comes after operators that use variables; only before them can it be compiled")
    for other in _init_graph(graph, operator).operators:
        constant = other.name == "ASSIGN_VARIABLE" and other.required_input(1).data is not None
        need(
            other.name == "VAR_HANDLE" or constant,
            f"its subgraph {number} holds {other.name} of operator {other.index}; only constants can be assigned there",
        )


# Converters that only update the context: these operators compute nothing.
VARIABLE_OPERATORS: Mapping[str, Callable[[Context, TfliteGraph, Operator], None]] = {
    "VAR_HANDLE": var_handle,
    "READ_VARIABLE": read_variable,
    "ASSIGN_VARIABLE": assign_variable,
    "CALL_ONCE": call_once,
}


# CIRCULAR_BUFFER: the last frames of a stream, the newest last.

# Buffer lengths for which the reference assumes a period of one frame if the options state none.
EVERY_FRAME = (5, 13, 25)


@converts(CIRCULAR_BUFFER, when=always)
def circular_buffer(context: Context, operator: Operator) -> Update:
    """Shifts the output, which is a variable tensor, by one frame and appends the new one."""
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
