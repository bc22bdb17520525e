"""Compares a run with references that do not use the compiler's integer arithmetic.

These are the runtime of the model's own format (ONNX Runtime, PyTorch, TensorFlow Lite Micro) and the quantised program
in float64. They find faults of the import that the integer meaning, made by that import, cannot show.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.frontend.onnx.schema import all_graphs, graphs_of
from uaccel.model import ImportedModel
from uaccel.ops.operator import DEQUANTIZE, QUANTIZE, constant, info_of, name_of, operator_of
from uaccel.ops.quantize import Dequantize
from uaccel.ops.resize import positions
from uaccel.tvm_api import (
    bindings_of,
    is_call,
    is_constant,
    is_tuple,
    is_tuple_get_item,
    plain_attributes,
    relax,
    replace_main,
    with_type,
)
from uaccel.tvm_api.executor import Executor

# ONNX Runtime, operator by operator as the file says, with sums that are right on every processor.
#
# On x86 without VNNI, ONNX Runtime adds products of uint8 and int8 in pairs to 16 bits, and saturates: two products may
# be 2 * 255 * 127 = 64770, above 32767. So a signed operand beside an unsigned one is made unsigned here: 128 is added
# to it and to its zero point. As (x + 128) - (z + 128) = x - z, the sum is the same. An int8 plus 128 fits uint8.

Array = NDArray[Any]
Samples = Sequence[Sequence[Array]]
_LINEAR, _INTEGER = ((0, 2), (3, 5)), ((0, 2), (1, 3))
# Operators that sum products of integers: the input numbers of each operand and of its zero point.
_SUMS = {
    "QLinearConv": _LINEAR,
    "QLinearMatMul": _LINEAR,
    "QGemm": _LINEAR,
    "ConvInteger": _INTEGER,
    "MatMulInteger": _INTEGER,
}


def onnx_runtime(path: Path, samples: Samples) -> tuple[str, list[list[Array]]] | None:
    """Returns its name and the outputs of each sample; None where it is not installed or lacks an operator."""
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        return None
    try:
        session = session_of(path)
        results = [session.run(None, _given(session.get_inputs(), sample)) for sample in samples]
    except Exception:  # it lacks operators that uaccel has; then it has no opinion
        return None
    return f"ONNX Runtime {runtime.__version__}", [[_as_array(value) for value in row] for row in results]


def session_of(model: Any | Path) -> Any:
    """Opens a session for a file or a model, without graph optimisation, which may change roundings."""
    onnx, runtime = importlib.import_module("onnx"), importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    loaded = onnx.load(model) if isinstance(model, Path) else model
    source = unsigned_sums(loaded).SerializeToString() if _SUMS.keys() & _operators(loaded.graph) else None
    given = source or (str(model) if isinstance(model, Path) else model.SerializeToString())
    return runtime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


def unsigned_sums(model: Any) -> Any:
    """Returns a copy of the model in which no sum of products has a signed and an unsigned operand."""
    onnx = importlib.import_module("onnx")
    copied = onnx.shape_inference.infer_shapes(model)
    _Unsigned(onnx).rewrite(copied.graph, {})
    return copied


class _Unsigned:
    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx

    def rewrite(self, graph: Any, outer: dict[str, int]) -> None:
        """Rewrites the graph and its subgraphs, which also see the types of ``outer`` values."""
        values = [*graph.input, *graph.value_info, *graph.output]
        types = outer | {value.name: value.type.tensor_type.elem_type for value in values}
        types |= {constant.name: constant.data_type for constant in graph.initializer}
        nodes: list[Any] = []
        for node in graph.node:
            for attribute in node.attribute:
                for inner in graphs_of(attribute):
                    self.rewrite(inner, types)
            pairs = _SUMS.get(node.op_type, ())
            kinds = [self._kind(node, pair, types) for pair in pairs]
            if set(kinds) == {self._onnx.TensorProto.UINT8, self._onnx.TensorProto.INT8}:
                nodes += self._unsigned(node, *pairs[kinds.index(self._onnx.TensorProto.INT8)])
            nodes.append(node)
        del graph.node[:]
        graph.node.extend(nodes)

    @staticmethod
    def _kind(node: Any, places: tuple[int, int], types: dict[str, int]) -> int:
        """Returns the type of an operand, or of its zero point where the operand's own is not known."""
        names = [node.input[place] for place in places if place < len(node.input)]
        return next((kind for name in names if (kind := types.get(name))), 0)

    def _unsigned(self, node: Any, operand: int, zero: int) -> list[Any]:
        """Returns the nodes that add 128 to the operand and to its zero point, and makes the node read their results.

        A zero point that is left away is 0, and so becomes 128."""
        onnx, names = self._onnx, list(node.input)
        names += [""] * (zero + 1 - len(names))
        made = []
        for place in (operand, zero):
            name = f"{node.output[0]}/unsigned{place}"
            half = onnx.numpy_helper.from_array(np.asarray(128, np.int32))
            steps = [onnx.helper.make_node("Constant", [], [f"{name}/half"], value=half)]
            moved = f"{name}/half"
            if names[place]:
                moved = f"{name}/moved"
                steps.append(onnx.helper.make_node("Cast", [names[place]], [f"{name}/wide"], to=onnx.TensorProto.INT32))
                steps.append(onnx.helper.make_node("Add", [f"{name}/wide", f"{name}/half"], [moved]))
            made += [*steps, onnx.helper.make_node("Cast", [moved], [name], to=onnx.TensorProto.UINT8)]
            names[place] = name
        node.ClearField("input")
        node.input.extend(names)
        return made


def _operators(graph: Any) -> set[str]:
    return {node.op_type for inner in all_graphs(graph) for node in inner.node}


def _given(inputs: Sequence[Any], sample: Sequence[Array]) -> dict[str, Array]:
    """Returns the inputs by name, in half precision where the file has that: firmware has float32 in its place."""
    halves = [entry.type == "tensor(float16)" for entry in inputs]
    values = [value.astype(np.float16) if half else value for half, value in zip(halves, sample, strict=True)]
    return {entry.name: value for entry, value in zip(inputs, values, strict=True)}


def _as_array(value: Any) -> Array:
    """Turns an output into an array; of rows that map labels to scores it keeps the scores."""
    maps = isinstance(value, list) and value and all(isinstance(row, dict) for row in value)
    return np.asarray([list(row.values()) for row in value] if maps else value)


# The model's own runtime, where it is installed: a second opinion beside the exact meaning.
#
# ONNX and PyTorch express quantised models in floats, and the order in which a runtime adds floats decides some
# roundings. So outputs are compared in steps of their scales, and elements one step apart are counted, not refused.

_ARENA = 1 << 20  # Bytes of TensorFlow Lite Micro's arena: more than the models need that it is used for.
Runtime = Callable[[ImportedModel, Path, Samples], "tuple[str, list[list[Array]]] | None"]


@dataclass(frozen=True)
class Opinion:
    """Counts how elements compare with a reference.

    ``largest``: the largest difference of outputs without a scale, as a share of the largest value. ``no_number``: how
    many samples are not compared, because the program quantises a NaN for them."""

    runtime: str
    elements: int
    equal: int
    one_step: int
    more: int
    largest: float | None
    no_number: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "runtime": self.runtime,
            "elements": self.elements,
            "equal": self.equal,
            "one_step": self.one_step,
            "more": self.more,
            "largest_relative_difference": self.largest,
            "no_number": self.no_number,
        }


def second_opinion(
    model: ImportedModel, path: Path, samples: Samples, outputs: Samples, runtime: Runtime | None = None
) -> Opinion | None:
    """Compares with the model's own runtime; None where the format has none, or it is not installed."""
    runtime = runtime or RUNTIMES.get(model.source_format)
    found = runtime(model, path, samples) if runtime is not None else None
    if found is None:
        return None
    name, wanted = found
    return compared(model, name, outputs, wanted)


def compared(model: ImportedModel, name: str, outputs: Samples, wanted: Samples) -> Opinion:
    """Compares outputs with those that reference ``name`` gives for the same samples."""
    scales = _scales(model)
    steps: list[Array] = [np.zeros(0)]
    floats: list[float] = []
    for given, expected in zip(outputs, wanted, strict=True):
        for whole, other, scale in zip(given, expected, scales, strict=True):
            value = whole[tuple(map(slice, other.shape))]  # firmware has room for the most rows there can be
            if scale is None:
                floats.append(_relative(value, other))
            else:
                steps.append(np.rint(np.abs(value.astype(np.float64) - other.astype(np.float64)) / scale).reshape(-1))
    apart = np.concatenate(steps)
    equal, one_step = int((apart == 0).sum()), int((apart == 1).sum())
    return Opinion(name, apart.size, equal, one_step, apart.size - equal - one_step, max(floats, default=None))


def _relative(value: Array, other: Array) -> float:
    """Returns the largest difference, as a share of the reference's largest value."""
    wide, other = value.astype(np.float64), other.astype(np.float64)
    size = float(np.abs(other).max(initial=0.0))
    difference = float(np.abs(wide - other).max(initial=0.0))
    return difference / size if size else difference


def _scales(model: ImportedModel) -> list[float | None]:
    """Returns the step of each output: the scale of a dequantised one, 1 for integers, None for other floats."""
    _, bindings, result = bindings_of(model.module["main"])
    definitions = dict(bindings)
    results = list(result.fields) if is_tuple(result) else [result]
    return [
        _scale(definitions, var) if spec.info.dtype == "float32" else 1.0
        for spec, var in zip(model.signature.outputs, results, strict=True)
    ]


def _scale(definitions: dict[Any, Any], var: Any) -> float | None:
    call = definitions.get(var)
    operator = operator_of(call) if call is not None and is_call(call) else None
    return float(operator.attrs_of(call).scale) if isinstance(operator, Dequantize) else None


def _onnx(_model: ImportedModel, path: Path, samples: Samples) -> tuple[str, list[list[Array]]] | None:
    return onnx_runtime(path, samples)


def tflite_micro(model: ImportedModel, path: Path, samples: Samples) -> tuple[str, list[list[Array]]] | None:
    """Runs TensorFlow Lite Micro's reference kernels, for models without a state.

    It is no entry of :data:`RUNTIMES`, as the exact meaning of TFLite models is the same arithmetic. ``uaccel demo``
    uses it to show that a program without common code agrees."""
    try:
        package = importlib.import_module("tflite_micro")
    except ImportError:
        return None
    interpreter = package.runtime.Interpreter.from_bytes(path.read_bytes(), arena_size=_ARENA)
    results = []
    for sample in samples:
        for index, value in enumerate(sample):
            interpreter.set_input(value, index)
        interpreter.invoke()
        results.append([np.array(interpreter.get_output(index)) for index in range(len(model.signature.outputs))])
    return "TensorFlow Lite Micro", results


def _torch_program(_model: ImportedModel, path: Path, samples: Samples) -> tuple[str, list[list[Array]]]:
    """Executes the exported program; importing it took PyTorch, so that is installed."""
    from uaccel.frontend.torch.isolated import execute_isolated

    version, rows = execute_isolated(path, samples)
    return f"PyTorch {version}", rows


RUNTIMES: dict[str, Runtime] = {"onnx": _onnx, "torch.export": _torch_program}


# The quantised ONNX or PyTorch program in float64, rounded only where the program itself quantises.
#
# The import turns the same program into integers. A bias or a scale that was lost there shows here, while the integer
# meaning has lost it as well.

NAME: Final = "its real meaning in float64"
LAYER_NORM, GROUP_NORM = "relax.nn.layer_norm", "relax.nn.group_norm"
NORMS: Final = (LAYER_NORM, GROUP_NORM, "relax.nn.instance_norm")
RESIZE: Final = "relax.image.resize2d"
PLACES: Final = ("align_corners", "asymmetric", "half_pixel", "pytorch_half_pixel")
FLOAT, WIDE = "float32", "float64"
# How near to the middle between two steps, in steps, counts as the middle. A value of up to 2**16 steps has a float64
# rounding error of up to 2**-37 steps an operation, so that this allows for 2**13 of them.
NEAR: Final = 2.0**-24


def real_opinion(model: ImportedModel, samples: Samples, outputs: Samples) -> Opinion | None:
    """Compares outputs with the program in float64; None without quantisation, or if an operator has no float64 form.

    Samples for which the program quantises a NaN are left out and counted."""
    if model.real is None or model.state:
        return None
    try:
        executor = Executor(in_float64(model.real))
        found = [executor.run([_wide(value) for value in sample]) for sample in samples]
    except Exception:  # an operator that has no float64 form; then there is no opinion
        return None
    said = [(output, wanted) for output, (*wanted, doubts) in zip(outputs, found, strict=True) if not doubts]
    opinion = compared(model, NAME, [output for output, _ in said], [wanted for _, wanted in said])
    return replace(opinion, no_number=len(outputs) - len(said))


def _wide(value: NDArray[Any]) -> NDArray[Any]:
    return value.astype(WIDE) if value.dtype == FLOAT else value


def in_float64(module: Any) -> Any:
    """Turns every float32 of a module into float64. One more result, the last, counts the NaNs that it quantises (as
    of 0 / 0): no step is the nearest to them."""
    parameters, bindings, result = bindings_of(module["main"])
    known = {var: relax.Var(var.name, _type(var)) for var in parameters}

    def body(block: Any) -> Any:
        writer = _Writer(block, known)
        for var, expr in bindings:
            known[var] = block.emit(writer.written(expr), str(var.name))
        results = result.fields if is_tuple(result) else [result]
        return relax.Tuple([*map(writer.again, results), writer.doubts])

    return replace_main([known[var] for var in parameters], body)


def _type(var: Any) -> Any:
    info = info_of(var)
    return relax.TensorType(info.shape, WIDE if info.dtype == FLOAT else info.dtype)


def _is_bilinear(given: Any) -> bool:
    known = given.method == "linear" and str(given.coordinate_transformation_mode) in PLACES
    return known and given.layout == "NCHW" and not any(map(float, given.roi or ()))


def _spread(mode: str, given: int, wanted: int) -> NDArray[np.float64]:
    """Returns the matrix of linear interpolation along one axis: a row for each pixel of the result."""
    weights = np.zeros((wanted, given))
    for row, place in zip(weights, positions(mode, given, wanted), strict=True):
        rest = float(place - int(place))
        row[int(place)] += 1 - rest
        row[min(int(place) + 1, given - 1)] += rest
    return weights


class _Writer:
    """Writes expressions anew in float64; ``known`` maps variables of the old module to those of the new one."""

    def __init__(self, block: Any, known: dict[Any, Any]) -> None:
        self.block, self.known = block, known
        self.doubts: Any = _number(0)

    def written(self, expr: Any) -> Any:
        if not is_call(expr):
            return self.again(expr)
        if name_of(expr) == QUANTIZE:
            return self._quantised(expr)
        if name_of(expr) == DEQUANTIZE:
            return self._real(expr)
        if name_of(expr) in NORMS:
            return self._normalised(expr, [self.again(arg) for arg in expr.args], plain_attributes(expr))
        if name_of(expr) == RESIZE and _is_bilinear(plain_attributes(expr)):
            return self._resized(expr)
        return with_type(expr, [self.again(arg) for arg in expr.args], FLOAT, WIDE)

    def again(self, expr: Any) -> Any:
        """Returns the expression with new variables and float64 constants."""
        if is_constant(expr):
            return constant(_wide(np.asarray(expr.value.numpy())))
        if is_tuple(expr):
            return relax.Tuple([self.again(field) for field in expr.fields])
        if is_tuple_get_item(expr):
            return relax.TupleGetItem(self.again(expr.tuple_value), expr.index)
        return self.known.get(expr, expr)

    def _let(self, expr: Any) -> Any:
        return self.block.emit(expr, "step")

    def _quantised(self, call: Any) -> Any:
        """Rounds to the nearest step, halves to even, and adds the zero point.

        It is written out, as plain rounding would take a half that float64 missed by one bit to the wrong side: what is
        within ``NEAR`` of the middle goes up exactly if the step below is odd."""
        limits = np.iinfo(info_of(call).dtype)
        value, scale, zero = self._parts(call)
        doubtful = self._let(relax.op.astype(self._let(relax.op.isnan(value)), WIDE))
        self.doubts = self._let(relax.op.add(self.doubts, self._let(relax.op.sum(doubtful))))
        steps = self._let(relax.op.divide(value, scale))
        below = self._let(relax.op.floor(steps))
        above_middle = self._let(relax.op.subtract(self._let(relax.op.subtract(steps, below)), _number(0.5)))
        half = self._let(relax.op.multiply(below, _number(0.5)))
        odd = self._let(relax.op.not_equal(self._let(relax.op.floor(half)), half))
        middle = self._let(relax.op.less_equal(self._let(relax.op.abs(above_middle)), _number(NEAR)))
        up = self._let(relax.op.where(middle, odd, self._let(relax.op.greater(above_middle, _number(0)))))
        nearest = self._let(relax.op.add(below, self._let(relax.op.astype(up, WIDE))))
        clipped = relax.op.clip(self._let(relax.op.add(nearest, zero)), float(limits.min), float(limits.max))
        return relax.op.astype(self._let(clipped), info_of(call).dtype)

    def _real(self, call: Any) -> Any:
        value, scale, zero = self._parts(call)
        return relax.op.multiply(self._let(relax.op.subtract(value, zero)), scale)

    def _normalised(self, call: Any, args: list[Any], attrs: Any) -> Any:
        """Writes out a normalisation, as TVM has none of float64: (x - mean) / sqrt(variance + epsilon), then factors.

        Groups are normalised as rows of a reshaped tensor. Factors belong to channels, but for layer normalisation."""
        (value, *factors), axes, shape = args, list(attrs.axes), info_of(call).shape
        if name_of(call) != LAYER_NORM:
            along = (-1, *(1,) * (len(shape) - 2))
            factors = [self._let(relax.op.reshape(factor, along)) for factor in factors]
        if name_of(call) == GROUP_NORM:
            value, axes = self._let(relax.op.reshape(value, (shape[0], int(attrs.num_groups), -1))), [2]
        centred = self._let(relax.op.subtract(value, self._let(relax.op.mean(value, axes, keepdims=True))))
        squares = self._let(relax.op.mean(self._let(relax.op.multiply(centred, centred)), axes, keepdims=True))
        deviation = self._let(relax.op.sqrt(self._let(relax.op.add(squares, _number(attrs.epsilon)))))
        normal = self._let(relax.op.reshape(self._let(relax.op.divide(centred, deviation)), shape))
        return relax.op.add(self._let(relax.op.multiply(normal, factors[0])), factors[1])

    def _resized(self, call: Any) -> Any:
        """Writes a bilinear resize as two products of matrices, as TVM resizes in float32 whatever the type."""
        mode = str(plain_attributes(call).coordinate_transformation_mode)
        rows, columns = (_spread(mode, info_of(call.args[0]).shape[axis], info_of(call).shape[axis]) for axis in (2, 3))
        wide = self._let(relax.op.matmul(self.again(call.args[0]), constant(np.ascontiguousarray(columns.T))))
        return relax.op.matmul(constant(rows), wide)

    def _parts(self, call: Any) -> tuple[Any, Any, Any]:
        """Returns value, scale and zero point in float64; those of channels are reshaped to lie along their axis."""
        value, scale, zero = (self._let(relax.op.astype(self.again(arg), WIDE)) for arg in call.args)
        rank, axis = len(info_of(call).shape), int(call.attrs.axis)
        if info_of(scale).elements == 1 or rank == 0:
            shape: Sequence[int] = ()
        else:
            shape = [-1 if place == axis % rank else 1 for place in range(rank)]
        return value, self._let(relax.op.reshape(scale, shape)), self._along(zero, scale, shape)

    def _along(self, zero: Any, scale: Any, shape: Sequence[int]) -> Any:
        single = info_of(zero).elements == 1 < info_of(scale).elements
        return self._let(relax.op.reshape(zero, () if single else shape))


def _number(value: float) -> Any:
    return constant(np.asarray(value, WIDE))
