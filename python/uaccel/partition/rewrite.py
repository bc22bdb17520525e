"""The module with its regions cut out: a function each, called from ``main``, in which the CPU's part is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from uaccel.accelerator import Accelerator, Expansion, Operation
from uaccel.accelerator.region import OpCall, Region, region_of
from uaccel.accelerator.vendor import vendors
from uaccel.errors import AcceleratorError
from uaccel.ops.base import info_of
from uaccel.partition.graph import Graph
from uaccel.partition.passes import changed
from uaccel.partition.regions import Group
from uaccel.tvm_api import (
    FunctionBlock,
    add_function,
    bindings_of,
    function_of_bindings,
    is_expression,
    is_tuple_type,
    is_var,
    module_of,
    relax,
    relax_substitute,
    replace_main,
    variables,
)


@dataclass(frozen=True)
class EngineCall:
    """What one accelerator computes at one place of the model.

    ``covers`` are the model's operator calls, none where an earlier call for the same claim has them; ``region`` is
    what is left of them for the accelerator. ``layer`` names it. ``cost`` is what the operations state, in cycles.
    """

    accelerator: Accelerator
    operation: Operation | None
    region: Region
    layer: str
    covers: tuple[OpCall, ...]
    cost: float = 0


@dataclass
class Rewritten:
    """``calls`` by the name of the function; ``origins``: the binding of the model that a new binding stems from.

    ``layer_names``: what the layer of a binding is called; those that are no layer of the model have no name there.
    ``stands_for``: by (binding, output), the (binding, output) of the model whose value that must be.
    """

    module: Any = None
    calls: dict[str, EngineCall] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    layer_names: dict[str, str] = field(default_factory=dict)
    stands_for: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)


def fields_of(var: Any) -> list[tuple[str, int]]:
    """A variable's tensors, by name and number."""
    return [(str(var.name), number) for number in range(len(getattr(var.ty, "fields", [var])))]


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
            self.env[var] = copy = self.block.emit(relax_substitute(expr, self.env), var.name)
            self.done.stands_for |= dict(zip(fields_of(copy), fields_of(var), strict=True))
            if self.graph.is_operator(index):
                self.done.layer_names[copy.name] = self.graph.name(index)

    def _call(self, group: Group) -> None:
        """The whole group as one function."""
        bindings = [self.graph.bindings[index] for index in sorted(group.members)]
        inputs, outputs = self.graph.boundary(group.members)
        covers = region_of(bindings, inputs, outputs, self.graph.names).calls
        layer = self.graph.region_name(group.members)
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
        self.done.stands_for |= {(result.name, number): (var.name, 0) for number, var in enumerate(outputs)}
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
        region = region_of(bindings, parameters, list(variables(result)), self.graph.names)
        cost = sum(claim.cost or 0 for claim in group.claims) if covers else 0
        self.done.calls[global_var.name_hint] = EngineCall(accelerator, group.operation, region, layer, covers, cost)
        var = self.block.emit(relax.Call(global_var, arguments), name)
        self.done.layer_names[var.name] = layer
        self.done.origins[var.name] = self.graph.bindings[group.claims[-1].root][0].name
        return var


class _Expand:
    """One claim in parts, some of them the CPU's."""

    def __init__(
        self, work: _Rewrite, group: Group, operation: Operation, expand: Callable[[Expansion, Region, list[Any]], Any]
    ) -> None:
        self.work = work
        self.group = group
        self.operation = operation
        self.expand = expand
        self.region = group.claims[0].region
        self.covers = self.region.calls
        """What the next call of the accelerator covers: all of the claim, and nothing a second time."""

    def run(self) -> None:
        accelerator, root = self.group.claims[0].accelerator, self.region.root
        inputs, outputs = self.work.graph.boundary(self.group.members)
        what = f"expand of operation '{self.operation.name}', given {root},"
        with vendors(accelerator.folder, what):
            result = self.expand(Expansion(root.name, self.bind, self.call), self.region, self.work.given(inputs))
            if is_expression(result) and not is_var(result):
                result = self.bind(result, str(outputs[0].name))
        self._require(result, accelerator, what)
        self.work.env[outputs[0]] = result
        self.work.done.stands_for[result.name, 0] = (outputs[0].name, 0)

    def _require(self, result: Any, accelerator: Accelerator, what: str) -> None:
        """The result is the claim's, and the accelerator has a part in it."""
        if not is_var(result) or is_tuple_type(result):
            raise AcceleratorError(f"{accelerator.folder}: {what} returned no tensor; wanted the claim's result")
        if info_of(result) != self.region.output:
            raise AcceleratorError(
                f"{accelerator.folder}: {what} made {info_of(result)}, and the result is {self.region.output}"
            )
        if self.covers:
            raise AcceleratorError(
                f"{accelerator.folder}: {what} gave the accelerator nothing to compute; "
                "call expansion.engine, or let 'check' refuse"
            )

    def bind(self, expr: Any, name: str) -> Any:
        var = self.work.block.emit(expr, name)
        self.work.done.origins[var.name] = self.work.graph.bindings[self.group.claims[0].root][0].name
        return var

    def call(self, name: str, arguments: list[Any], make: Callable[[list[Any]], Any]) -> Any:
        parameters = [relax.Var(f"input{index}", argument.ty) for index, argument in enumerate(arguments)]
        function = engine_function(self.group, name, parameters, lambda block: block.emit(make(parameters), name))
        covers, self.covers = self.covers, ()
        layer = self.region.root.name if covers else name
        return self.work.call(self.group, function, arguments, name, layer, covers)


def engine_function(group: Group, name: str, parameters: list[Any], body: Callable[[FunctionBlock], Any]) -> Any:
    """The function of an accelerator's region, after the vendor's own passes over it.

    The layer's name is part of it: TVM would take two regions that compute alike for one.
    """
    accelerator = group.claims[0].accelerator
    what = group.operation.name if group.operation is not None else "region"
    attributes = {"Codegen": accelerator.name, "Composite": f"{accelerator.name}.{what}", "layer": name}
    function = function_of_bindings(name, parameters, attributes, body)
    if not accelerator.on_region:
        return function
    module = module_of(function)  # which is what a pass works on
    for change in accelerator.on_region:
        module = changed(accelerator, "on_region", change, module)
    return module["main"].without_attr("global_symbol")
