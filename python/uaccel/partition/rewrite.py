"""The module with its regions cut out: a function each, called from ``main``, in which the CPU's part is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from uaccel.accelerator import Accelerator, Expansion, Operation
from uaccel.accelerator.region import OpCall, Region, region_of
from uaccel.errors import AcceleratorError
from uaccel.ops.base import info_of
from uaccel.partition.graph import Graph, variables
from uaccel.partition.regions import Group
from uaccel.tvm_api import (
    FunctionBlock,
    add_function,
    bindings_of,
    function_of_bindings,
    is_var,
    module_of,
    relax,
    relax_substitute,
    replace_main,
    same_type,
)


@dataclass(frozen=True)
class EngineCall:
    """What one accelerator computes at one place of the model.

    ``covers`` are the model's operator calls, ``region`` what is left of them for the accelerator. ``layer`` names it.
    """

    accelerator: Accelerator
    operation: Operation | None
    region: Region
    layer: str
    covers: tuple[OpCall, ...]


@dataclass
class Rewritten:
    """``calls`` by the name of the function; ``origins``: the binding of the model that a new binding stems from.

    ``layer_names``: what the layer of a binding is called, where that is not the binding's name.
    """

    module: Any = None
    calls: dict[str, EngineCall] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    layer_names: dict[str, str] = field(default_factory=dict)


def rewrite(graph: Graph, groups: Sequence[Group]) -> Rewritten:
    """A new module; every group becomes a call, an expansion, or stays the binding that it is."""
    work = _Rewrite(graph)
    work.done.module = replace_main(list(graph.parameters), lambda block: work.body(block, groups))
    return work.done


class _Rewrite:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.done = Rewritten()
        self.env: dict[Any, Any] = {}
        self.block: FunctionBlock

    def body(self, block: FunctionBlock, groups: Sequence[Group]) -> Any:
        self.block = block
        for group in groups:
            if not group.claims:
                self._copy(group)
            elif group.operation is not None and group.operation.expand is not None:
                _Expand(self, group, group.operation, group.operation.expand).run()
            else:
                self._call(group)
        return relax_substitute(self.graph.result, self.env)

    def _copy(self, group: Group) -> None:
        for index in sorted(group.members):
            var, expr = self.graph.bindings[index]
            self.env[var] = self.block.emit(relax_substitute(expr, self.env), var.name)

    def _call(self, group: Group) -> None:
        """The whole group as one function."""
        bindings = [self.graph.bindings[index] for index in sorted(group.members)]
        inputs, outputs = self.graph.boundary(group.members)
        covers = region_of(bindings, inputs, outputs).calls
        layer = covers[0].name if len(covers) == 1 else f"{covers[0].name}_to_{covers[-1].name}"
        parameters = [relax.Var(var.name, var.ty) for var in inputs]
        inside: dict[Any, Any] = dict(zip(inputs, parameters, strict=True))

        def body(block: FunctionBlock) -> Any:
            for var, expr in bindings:
                inside[var] = block.emit(relax_substitute(expr, inside), var.name)
            results = [inside[var] for var in outputs]
            return results[0] if len(results) == 1 else relax.Tuple(results)

        name = outputs[0].name if len(outputs) == 1 else layer
        function = engine_function(group, layer, parameters, body)
        result = self.call(group, function, self.given(inputs), name, layer, covers)
        fields = (
            [result]
            if len(outputs) == 1
            else [self.block.emit(relax.TupleGetItem(result, index), var.name) for index, var in enumerate(outputs)]
        )
        self.env.update(zip(outputs, fields, strict=True))

    def given(self, inputs: Sequence[Any]) -> list[Any]:
        """The variables of the new main function."""
        return [self.env.get(var, var) for var in inputs]

    def call(
        self, group: Group, function: Any, arguments: list[Any], name: str, layer: str, covers: tuple[OpCall, ...]
    ) -> Any:
        """Bind a call of an engine's function."""
        accelerator = group.claims[0].accelerator
        global_var = add_function(self.block, function, f"{accelerator.name}_{layer}")
        parameters, bindings, result = bindings_of(function)
        region = region_of(bindings, parameters, list(variables(result)))
        self.done.calls[global_var.name_hint] = EngineCall(accelerator, group.operation, region, layer, covers)
        var = self.block.emit(relax.Call(global_var, arguments), name)
        self.done.layer_names[var.name] = layer
        self.done.origins[var.name] = covers[-1].name
        return var


@dataclass(frozen=True)
class _Expand:
    """One claim in parts, some of them the CPU's."""

    work: _Rewrite
    group: Group
    operation: Operation
    expand: Callable[[Expansion, Region, list[Any]], Any]

    def run(self) -> None:
        claim = self.group.claims[0]
        inputs, (output, *_) = self.work.graph.boundary(self.group.members)
        layer = str(output.name)
        result = self.expand(Expansion(layer, self.bind, self.call), claim.region, self.work.given(inputs))
        if not is_var(result):
            result = self.bind(result, layer)
            self.work.done.layer_names[result.name] = f"{layer}_result"
        if info_of(result) != claim.region.output:
            raise AcceleratorError(
                f"{claim.accelerator.folder}: 'expand' of operation '{self.operation.name}' made {info_of(result)} of "
                f"{claim.region.root}, whose result is {claim.region.output}"
            )
        self.work.env[output] = result

    def bind(self, expr: Any, name: str) -> Any:
        var = self.work.block.emit(expr, name)
        self.work.done.origins[var.name] = self.group.claims[0].region.root.name
        return var

    def call(self, name: str, arguments: list[Any], make: Callable[[list[Any]], Any]) -> Any:
        parameters = [relax.Var(f"input{index}", argument.ty) for index, argument in enumerate(arguments)]
        function = engine_function(self.group, name, parameters, lambda block: block.emit(make(parameters), name))
        region = self.group.claims[0].region
        return self.work.call(self.group, function, arguments, name, region.root.name, region.calls)


def engine_function(group: Group, name: str, parameters: list[Any], body: Callable[[FunctionBlock], Any]) -> Any:
    """The function of an accelerator's region, after the vendor's own passes over it."""
    accelerator = group.claims[0].accelerator
    what = group.operation.name if group.operation is not None else "region"
    attributes = {"Codegen": accelerator.name, "Composite": f"{accelerator.name}.{what}"}
    function = function_of_bindings(name, parameters, attributes, body)
    for change in accelerator.on_region:
        function = _changed(accelerator, change, function)
    return function


def _changed(accelerator: Accelerator, change: Callable[[Any], Any], function: Any) -> Any:
    """A vendor's pass over a region, which it sees as a module with ``main``; the function's type must stay."""
    name = getattr(change, "name", getattr(change, "__name__", type(change).__name__))
    changed = change(module_of(function))["main"]
    if not same_type(changed, function):
        raise AcceleratorError(
            f"{accelerator.folder}: pass '{name}' made of a region of type {function.ty} one of type {changed.ty}; "
            "a pass over a region keeps its inputs and outputs"
        )
    return changed.without_attr("global_symbol")
