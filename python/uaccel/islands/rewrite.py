"""Two walks over a float model: backwards to see what is needed as floats, forwards to write it anew with integers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uaccel.errors import ModelError
from uaccel.islands import (
    affine,
    conv,
    elementwise,
    functions,
    join,
    matmul,
    means,
    norm,
    prelu,
    resize,
    softmax,
    transposed,
)
from uaccel.islands.emitter import Emitter
from uaccel.islands.fallen import fallen
from uaccel.islands.graph import Graph, read
from uaccel.islands.held import OFFSETS, Grid, Integers
from uaccel.islands.moves import grid_of, integers_of, moved_from
from uaccel.islands.plan import planned
from uaccel.islands.reals import Real, real_sums
from uaccel.islands.rules import Emit
from uaccel.islands.spelt_out import dequantized, quantized
from uaccel.islands.table import real_table
from uaccel.model import ImportedModel, Signature, TensorSpec
from uaccel.ops.base import info_of
from uaccel.ops.traits import DEQUANTIZE, QUANTIZE, name_of
from uaccel.tvm_api import is_call, is_constant, is_tuple, is_var, relax, replace_main, variables

RULE_MODULES = (conv, transposed, elementwise, functions, affine, join, matmul, means, norm, prelu, resize, softmax)
FLOAT_NOTE = "its quantised form has no exact integer operator here and is computed in float"


def integers(model: ImportedModel) -> ImportedModel:
    """The model with integer operators wherever it is quantised; the rest computes floats as before."""
    if not any(_is(expr, QUANTIZE, DEQUANTIZE) for expr in read(model.module, {}).definitions.values()):
        return model
    return _Rewrite(model).run()


def _is(expr: Any, *names: str) -> bool:
    return is_call(expr) and name_of(expr) in names


class _Rewrite:
    def __init__(self, model: ImportedModel) -> None:
        self.model = model
        self.graph: Graph = read(model.module, model.origins)
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
        """Backwards: how each quantised value is computed, and which variables must be there as floats."""
        self.as_floats.update(variables(self.graph.result))
        for var, expr in reversed(self.graph.definitions.items()):
            if _is(expr, QUANTIZE):
                self._plan_quantised(var, expr)
            elif _is(expr, DEQUANTIZE) and grid_of(self.graph, var) is not None:
                self.as_floats.update(self._given_integers(expr))
            elif var in self.as_floats and grid_of(self.graph, var) is None and self.graph.value(var) is None:
                self._plan_real(var, expr)

    def _plan_real(self, var: Any, call: Any) -> None:
        """From integers where they are all that it takes."""
        table = real_table(self.graph, var)
        found = (var, table) if table is not None else real_sums(self.graph, var)
        if found is None:
            self.as_floats.update(variables(call))
        else:
            self.reals[var] = found

    def _given_integers(self, call: Any) -> list[Any]:
        """What the integers of a dequantize come from, where that is another operator than a quantize."""
        base = call.args[0]
        while (step := moved_from(self.graph, base)) is not None:
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
        found = planned(self.graph, value, grid)
        if isinstance(found, tuple):
            self.plans[var] = found
            return
        self.refused[value] = found
        self.as_floats.add(value)

    def _warnings(self) -> list[str]:
        """One for each operator of the model that is computed in float though it is quantised."""
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
        """Reports call the integers as the model calls the quantised tensor."""
        spec = self.model.tensors.get(var.name)
        if spec is not None and is_var(held.stored) and held.stored.name in emitter.tensors:
            known = emitter.tensors[held.stored.name]
            emitter.tensors[held.stored.name] = TensorSpec(spec.name, known.info, known.quantisation)

    def _real(self, emitter: Emitter, var: Any, expr: Any) -> Any:
        """The variable in its own type: floats, or integers that the model gives out as such."""
        declared = "" if hasattr(var.ty, "fields") else info_of(var).dtype
        if var in emitter.integers and not declared.startswith("float"):
            return emitter.as_declared(emitter.integers[var], declared)
        grid = None if hasattr(var.ty, "fields") else grid_of(self.graph, var)
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
        return quantized(emitter, operand, parts[0], parts[1], axis, info_of(call).dtype)

    def _tensor(self, var: Any) -> str:
        spec = self.model.tensors.get(var.name)
        return spec.name if spec else ""

    def _result(self, emitter: Emitter, result: Any) -> Any:
        if is_tuple(result):
            return relax.Tuple([self._result(emitter, entry) for entry in result.fields])
        return result if is_constant(result) else emitter.reals[result]

    def _signature(self) -> Signature:
        """With the grids of integer inputs and outputs, as the model's own types state them."""
        given = self.model.signature
        result = self.graph.result
        results = list(result.fields) if is_tuple(result) else [result]
        inputs = tuple(
            self._stated(spec, self._reader(var)) for spec, var in zip(given.inputs, self.graph.parameters, strict=True)
        )
        outputs = tuple(self._stated(spec, self._writer(var)) for spec, var in zip(given.outputs, results, strict=True))
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


def _declared(grid: Grid, dtype: str) -> Grid:
    return replace(grid, zero_point=grid.zero_point + OFFSETS.get(dtype, 0))
