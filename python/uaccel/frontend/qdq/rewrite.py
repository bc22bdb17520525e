"""Rewrites float models with quantisation steps, as ONNX and PyTorch have them, in integer operators.

The module is walked twice. Backwards, each quantised value gets a plan, and the variables that must exist as floats are
found: whether one must depends on its readers, which come later. Forwards, plans emit integers and the rest is repeated
in float. Quantised operators that stay in float are reported as warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from uaccel.errors import ModelError
from uaccel.frontend.qdq import conv, elementwise, matmul, normalize, reduce
from uaccel.frontend.qdq.conv import CONVOLUTIONS, TRANSPOSED
from uaccel.frontend.qdq.emitter import Emitter, integers_of, moved_grid, movement_source
from uaccel.frontend.qdq.graph import OFFSETS, Integers, QdqGraph, QuantGrid, along_axis, read
from uaccel.frontend.qdq.lookup_table import real_table
from uaccel.frontend.qdq.matmul import Real, real_sums
from uaccel.frontend.qdq.plan import choose_rule
from uaccel.frontend.qdq.rules import Emit
from uaccel.model import Array, ImportedModel, Signature, TensorSpec
from uaccel.ops.operator import DEQUANTIZE, FLOATS, QUANTIZE, constant, info_of, name_of
from uaccel.tvm_api import is_call, is_constant, is_tuple, is_tuple_get_item, is_var, relax, replace_main, variables

# Quantised operators that are computed in float: each is reported with a reason.

RECURRENT = "uaccel.recurrent"
WEIGHTED = (*CONVOLUTIONS, *TRANSPOSED, "relax.matmul")
NO_RESULT = "its result is not quantised"
NO_WEIGHTS = "its weights are not quantised"
READ_BY_FLOATS = "what reads it computes in float"


def fallen(graph: QdqGraph, refused: Mapping[Any, str]) -> Iterator[tuple[Any, str]]:
    """Yields variables that seem quantised but are computed in float, in the model's order, each with a reason.

    Such a variable reads integers, perhaps by way of other floats (the walk forwards), and a value that the model
    quantises depends on it. ``refused`` has those values and why they have no plan; the walk backwards hands a reason
    on to operands, unless float weights explain it better. Layers with quantised weights count without such a value.
    """
    floats = {var: bound for var, bound in graph.definitions.items() if _is_float(graph, var, bound)}
    reading: set[Any] = set()
    for var, bound in floats.items():
        if any(operand in reading or _is_integer(graph, operand) for operand in variables(bound)):
            reading.add(var)
    reasons = dict(refused)
    for var in reversed(floats):
        if var in reasons:
            reasons[var] = NO_WEIGHTS if _has_float_weights(graph, var) else reasons[var]
            for operand in variables(floats[var]):
                reasons.setdefault(operand, READ_BY_FLOATS if reasons[var] == NO_WEIGHTS else reasons[var])
    for var in floats:
        if var not in reading or movement_source(graph, var) is not None:
            continue
        if var in reasons:
            yield var, reasons[var]
        elif _has_weights(graph, var):
            yield var, NO_RESULT


def _is_float(graph: QdqGraph, var: Any, bound: Any) -> bool:
    if graph.call(var, QUANTIZE, DEQUANTIZE) is not None:
        return False
    return hasattr(var.ty, "fields") or (graph.value(var) is None and moved_grid(graph, var) is None)


def _is_integer(graph: QdqGraph, operand: Any) -> bool:
    return not hasattr(operand.ty, "fields") and moved_grid(graph, operand) is not None


def _has_weights(graph: QdqGraph, var: Any) -> bool:
    bound = graph.definitions[var]
    known = is_call(bound) and graph.name(var) in WEIGHTED and graph.integers(bound.args[1]) is not None
    return bool(known) and _is_integer(graph, bound.args[0])


def _has_float_weights(graph: QdqGraph, var: Any) -> bool:
    bound = graph.definitions[var]
    layer = graph.definitions.get(bound.tuple_value) if is_tuple_get_item(bound) else bound
    if layer is not None and is_call(layer) and name_of(layer) == RECURRENT:
        return all(info_of(operand).dtype in FLOATS for operand in layer.args)
    weights = bound.args[1] if graph.name(var) in WEIGHTED else None
    return weights is not None and graph.value(weights) is not None and graph.integers(weights) is None


# Quantisation steps without a grid (scales along an axis, int32), written as float arithmetic.


def quantize_in_float(emitter: Emitter, real: Any, scale: Array, zero_point: Array, axis: int, dtype: str) -> Any:
    """Emits round(real / scale) + zero_point, halves to even, saturated."""
    rank, limits = len(info_of(real).shape), np.iinfo(dtype)
    steps = _bound(emitter, relax.op.divide(real, _constant(scale, axis, rank, np.float32)))
    shifted = relax.op.add(_half_even(emitter, steps), _constant(zero_point, axis, rank, np.float32))
    clipped = relax.op.clip(_bound(emitter, shifted), float(limits.min), float(limits.max))
    return relax.op.astype(_bound(emitter, clipped), dtype)


def dequantized(emitter: Emitter, stored: Any, scale: Array, zero_point: Array, axis: int) -> Any:
    """Emits (stored - zero_point) * scale."""
    rank = len(info_of(stored).shape)
    wide = _bound(emitter, relax.op.astype(stored, "int32"))
    if zero_point.any():
        wide = _bound(emitter, relax.op.subtract(wide, _constant(zero_point, axis, rank, np.int32)))
    real = _bound(emitter, relax.op.astype(wide, "float32"))
    return relax.op.multiply(real, _constant(scale, axis, rank, np.float32))


def _half_even(emitter: Emitter, value: Any) -> Any:
    """Emits rounding half to even from floor and comparisons, so that no library's rounding mode matters."""
    below = _bound(emitter, relax.op.floor(value))
    rest = _bound(emitter, relax.op.subtract(value, below))
    half = _bound(emitter, relax.op.multiply(below, _number(0.5)))
    odd = _bound(emitter, relax.op.not_equal(_bound(emitter, relax.op.floor(half)), half))
    middle = _bound(emitter, relax.op.logical_and(_bound(emitter, relax.op.equal(rest, _number(0.5))), odd))
    up = _bound(emitter, relax.op.logical_or(_bound(emitter, relax.op.greater(rest, _number(0.5))), middle))
    above = _bound(emitter, relax.op.add(below, _number(1.0)))
    return _bound(emitter, relax.op.where(up, above, below))


def _bound(emitter: Emitter, expr: Any) -> Any:
    return emitter.bind(expr, suffix="_step")


def _number(value: float) -> Any:
    return constant(np.asarray(value, np.float32))


def _constant(values: Array, axis: int, rank: int, dtype: Any) -> Any:
    return constant(along_axis(np.asarray(values), axis, rank).astype(dtype))


# The two walks: backwards to plan, forwards to write.

# Importing these modules registers their rules.
RULE_MODULES = (conv, elementwise, matmul, normalize, reduce)
FLOAT_NOTE = "its quantised form has no exact integer operator here and is computed in float"


def integers(model: ImportedModel) -> ImportedModel:
    """The model with integer operators wherever it is quantised; the rest computes floats as before."""
    if not any(_is(expr, QUANTIZE, DEQUANTIZE) for expr in read(model.module, {}).definitions.values()):
        return model
    return _Rewrite(model).run()


def _is(expr: Any, *names: str) -> bool:
    return is_call(expr) and name_of(expr) in names


class _Rewrite:
    """One rewriting. ``plans``: of quantised variables. ``as_floats``: variables that readers need in the model's type.
    ``reals``: how such floats come straight from integers. ``refused``: values without a plan, and why.
    """

    def __init__(self, model: ImportedModel) -> None:
        self.model = model
        self.graph: QdqGraph = read(model.module, model.origins)
        self.plans: dict[Any, tuple[Any, Emit]] = {}
        self.as_floats: set[Any] = set()
        self.reals: dict[Any, tuple[Any, Real]] = {}
        self.refused: dict[Any, str] = {}

    def run(self) -> ImportedModel:
        self._plan()
        emitters: list[Emitter] = []

        def body(block: Any) -> Any:
            emitter = Emitter(self.graph, block)
            emitters.append(emitter)
            return self._write(emitter)

        module = replace_main(self.graph.parameters, body)
        emitter = emitters[0]
        given = {name: self.model.tensors[name] for name in (v.name for v in self.graph.parameters)}
        return replace(
            self.model,
            module=module,
            real=self.model.module,
            signature=self._signature(),
            tensors=given | emitter.tensors,
            origins=emitter.origins,
            warnings=(*self.model.warnings, *self._warnings()),
        )

    def _plan(self) -> None:
        """Walks backwards: plans each quantised value and collects the variables that must exist as floats.

        All readers of a variable come after it, so ``as_floats`` is final for a variable when the walk meets it. A
        quantised value with a plan needs no floats; one without, and each result of the model, needs its operands.
        """
        self.as_floats.update(variables(self.graph.result))
        for var, expr in reversed(self.graph.definitions.items()):
            if _is(expr, QUANTIZE):
                self._plan_quantised(var, expr)
            elif _is(expr, DEQUANTIZE) and moved_grid(self.graph, var) is not None:
                self.as_floats.update(self._given_integers(expr))
            elif var in self.as_floats and moved_grid(self.graph, var) is None and self.graph.value(var) is None:
                self._plan_real(var, expr)

    def _plan_real(self, var: Any, call: Any) -> None:
        """Plans a float from integers (a table, or sums of a layer with weights); else its operands stay floats."""
        table = real_table(self.graph, var)
        found = (var, table) if table is not None else real_sums(self.graph, var)
        if found is None:
            self.as_floats.update(variables(call))
        else:
            self.reals[var] = found

    def _given_integers(self, call: Any) -> list[Any]:
        """The variable whose integers a dequantize reads, where no quantize of the model makes them."""
        base = call.args[0]
        while (step := movement_source(self.graph, base)) is not None:
            base = step[1]
        return [] if self.graph.call(base, QUANTIZE) is not None else [base]

    def _plan_quantised(self, var: Any, call: Any) -> None:
        if self.graph.value(call.args[0]) is not None:
            return
        grid = self.graph.grid(call)
        value = call.args[0]
        if grid is None:
            self.refused[value] = "its result has scales along an axis, or a type that is not held as integers"
            if var in self.as_floats:
                self.as_floats.add(value)
            return
        found = choose_rule(self.graph, value, grid)
        if isinstance(found, tuple):
            self.plans[var] = found
            return
        self.refused[value] = found
        self.as_floats.add(value)

    def _warnings(self) -> list[str]:
        """One warning for each operator of the model that is quantised but computed in float."""
        found: dict[str, str] = {}
        for var, reason in fallen(self.graph, self.refused):
            if var in self.as_floats and var not in self.reals:
                found.setdefault(self._where(var), f"{self._where(var)}: {FLOAT_NOTE} ({reason})")
        return list(found.values())

    def _where(self, var: Any) -> str:
        origin = self.graph.origins.get(var.name)
        return f'operator {origin.index} {origin.op} ("{origin.tensor}")' if origin else f"operator {var.name}"

    def _write(self, emitter: Emitter) -> Any:
        for var in self.graph.parameters:
            emitter.reals[var] = emitter.names.take(var.name) and var
        for var, expr in self.graph.definitions.items():
            emitter.layer = var
            if _is(expr, QUANTIZE):
                self._write_quantised(emitter, var, expr)
            if var in self.as_floats:
                emitter.reals[var] = self._real(emitter, var, expr)
        return self._result(emitter, self.graph.result)

    def _write_quantised(self, emitter: Emitter, var: Any, call: Any) -> None:
        grid = self.graph.grid(call)
        if grid is None or self.graph.value(call.args[0]) is not None:
            return
        if var in self.plans:
            emitter.layer, emit = self.plans[var]
            held = emit(emitter)
        else:
            real = emitter.real(call.args[0])
            held = emitter.quantized(real, grid)
        self._named(emitter, var, held)
        emitter.integers[var] = held
        emitter.layer = var

    def _named(self, emitter: Emitter, var: Any, held: Integers) -> None:
        """Gives the integers the name of the model's quantised tensor, for reports."""
        spec = self.model.tensors.get(var.name)
        if spec is not None and is_var(held.stored) and held.stored.name in emitter.tensors:
            known = emitter.tensors[held.stored.name]
            emitter.tensors[held.stored.name] = TensorSpec(spec.name, known.info, known.quantisation)

    def _real(self, emitter: Emitter, var: Any, expr: Any) -> Any:
        """The variable in the model's own type: floats, or integers that are a result or an operand as such."""
        declared = "" if hasattr(var.ty, "fields") else info_of(var).dtype
        if var in emitter.integers and not declared.startswith("float"):
            return emitter.as_declared(emitter.integers[var], declared)
        grid = None if hasattr(var.ty, "fields") else moved_grid(self.graph, var)
        if grid is not None:
            held = integers_of(emitter, var, grid)
            if not declared.startswith("float"):
                return emitter.as_declared(held, declared)
            real = emitter.dequantized(held)
            return real if declared == "float32" else emitter.bind(relax.op.astype(real, declared), suffix="_half")
        if var in self.reals:
            emitter.layer, real_of = self.reals[var]
            return real_of(emitter)
        known = self.graph.value(var) if not hasattr(var.ty, "fields") else None
        if known is not None:
            return relax.const(known.astype(declared), declared)
        if _is(expr, QUANTIZE, DEQUANTIZE):
            return emitter.bind(self._spelt_out(emitter, expr), tensor=self._tensor(var))
        return emitter.bind(emitter.again(expr), tensor=self._tensor(var))

    def _spelt_out(self, emitter: Emitter, call: Any) -> Any:
        parts = [self.graph.value(arg) for arg in call.args[1:3]]
        if parts[0] is None or parts[1] is None:
            raise ModelError(f"{self._where(emitter.layer)}: its scale or zero point is computed at run time")
        operand, axis = emitter.real(call.args[0]), int(call.attrs.axis)
        if name_of(call) == DEQUANTIZE:
            return dequantized(emitter, operand, parts[0], parts[1], axis)
        return quantize_in_float(emitter, operand, parts[0], parts[1], axis, info_of(call).dtype)

    def _tensor(self, var: Any) -> str:
        spec = self.model.tensors.get(var.name)
        return spec.name if spec else ""

    def _result(self, emitter: Emitter, result: Any) -> Any:
        if is_tuple(result):
            return relax.Tuple([self._result(emitter, entry) for entry in result.fields])
        return result if is_constant(result) else emitter.reals[result]

    def _signature(self) -> Signature:
        """The signature with the quantisation of integer inputs and outputs, in the model's own types. Parameters and
        results for the model's state come last, and are no part of it."""
        given = self.model.signature
        result = self.graph.result
        results = list(result.fields) if is_tuple(result) else [result]
        pairs = zip(given.inputs, self.graph.parameters, strict=False), zip(given.outputs, results, strict=False)
        inputs = tuple(self._stated(spec, self._reader(var)) for spec, var in pairs[0])
        outputs = tuple(self._stated(spec, self._writer(var)) for spec, var in pairs[1])
        return Signature(inputs, outputs)

    def _stated(self, spec: TensorSpec, call: Any) -> TensorSpec:
        if call is None or spec.quantisation is not None:
            return spec
        grid = self.graph.grid(call)
        return spec if grid is None else replace(spec, quantisation=_declared(grid, spec.info.dtype).quantisation)

    def _reader(self, parameter: Any) -> Any:
        calls = (expr for expr in self.graph.definitions.values() if _is(expr, DEQUANTIZE))
        return next((call for call in calls if call.args[0].same_as(parameter)), None)

    def _writer(self, var: Any) -> Any:
        return self.graph.call(var, QUANTIZE) if is_var(var) else None


def _declared(grid: QuantGrid, dtype: str) -> QuantGrid:
    return replace(grid, zero_point=grid.zero_point + OFFSETS.get(dtype, 0))
