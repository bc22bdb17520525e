"""Merges claims into regions, cuts each region out of ``main`` as a function for its engine, and names layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from uaccel import tvm_api
from uaccel.accelerator import Accelerator, Expansion, Operation
from uaccel.accelerator.region import OpCall, Region, region_of
from uaccel.accelerator.vendor import vendors
from uaccel.errors import AcceleratorError
from uaccel.model import ImportedModel, UniqueNames, c_identifier
from uaccel.ops.operator import info_of
from uaccel.partition.claims import RESULT, BindingGraph, Claim
from uaccel.partition.passes.float_fusion import Fused
from uaccel.partition.passes.layout import LayoutsChanged
from uaccel.tvm_api import relax

# Groups: adjacent claims of an accelerator that takes whole regions merge, as far as no cycle arises.
#
# Two groups A -> B may merge if every path from A to B is a direct edge. If one led through a third group C, the merged
# group would have to run before C and after it. The graph of groups has no cycle at first, and no merge makes one, so
# groups can always be put in order.


@dataclass(frozen=True, eq=False)
class Group:
    """Holds bindings that run together: an accelerator's, or a single one of the CPU's, without ``claims``."""

    members: frozenset[int]
    claims: tuple[Claim, ...] = ()
    part: int = 0  # How many cuts lie before it; groups of different parts do not merge.

    @property
    def accelerator(self) -> Accelerator | None:
        return self.claims[0].accelerator if self.claims else None

    @property
    def operation(self) -> Operation | None:
        """Returns the operation of a region that is one claim; None for a merged one and for the CPU's."""
        return self.claims[0].operation if len(self.claims) == 1 else None

    def merges_with(self, other: Group) -> bool:
        """Says whether one command stream may hold both."""
        return (
            self.accelerator is not None
            and self.accelerator is other.accelerator
            and self.part == other.part
            and all(claim.operation.lower is None for claim in (*self.claims, *other.claims))
        )


def groups_of(graph: BindingGraph, claims: Sequence[Claim], cuts: Sequence[str] = ()) -> list[Group]:
    """Puts every binding in one group, in an order in which they can run; no group reaches across one of ``cuts``."""
    claimed = {index for claim in claims for index in claim.members}
    ends = [index for index in range(len(graph.bindings)) if graph.name(index) in cuts]
    groups = [Group(claim.members, (claim,), sum(end < claim.root for end in ends)) for claim in claims]
    groups += [Group(frozenset({i})) for i in range(len(graph.bindings)) if i not in claimed]
    return _Contraction(graph, groups).merged()


class _Contraction:
    """Holds the graph with its groups as nodes; ``successors`` by number of a group."""

    def __init__(self, graph: BindingGraph, groups: list[Group]) -> None:
        self.graph = graph
        self.groups: dict[int, Group] = dict(enumerate(groups))
        owner = {index: number for number, group in self.groups.items() for index in group.members}
        self.successors: dict[int, set[int]] = {number: set() for number in self.groups}
        for index, users in enumerate(graph.users):
            self.successors[owner[index]] |= {owner[user] for user in users if user != RESULT}
        for number, after in self.successors.items():
            after.discard(number)

    def merged(self) -> list[Group]:
        """Merges along edges that are the only path between their ends, until no such edge is left."""
        changed = True
        while changed:
            changed = False
            for number in self._order():
                changed |= number in self.groups and self._merge_successors(number)
        return [self.groups[number] for number in self._order()]

    def _merge_successors(self, number: int) -> bool:
        for other in sorted(self.successors[number], key=self._first):
            if self.groups[number].merges_with(self.groups[other]) and not self._other_way(number, other):
                self._merge(number, other)
                return True
        return False

    def _other_way(self, start: int, end: int) -> bool:
        """Says whether a path leads from one group to the other through a third."""
        seen: set[int] = set()
        waiting = [number for number in self.successors[start] if number != end]
        while waiting:
            number = waiting.pop()
            if number == end:
                return True
            if number not in seen:
                seen.add(number)
                waiting += self.successors[number]
        return False

    def _merge(self, one: int, other: int) -> None:
        first, second = self.groups[one], self.groups.pop(other)
        claims = tuple(sorted((*first.claims, *second.claims), key=lambda claim: claim.root))
        self.groups[one] = Group(first.members | second.members, claims, first.part)
        self.successors[one] = (self.successors[one] | self.successors.pop(other)) - {one, other}
        for after in self.successors.values():
            if other in after:
                after.discard(other)
                after.add(one)
        self.successors[one].discard(one)

    def _first(self, number: int) -> int:
        return min(self.groups[number].members)

    def _order(self) -> list[int]:
        """Returns a topological order, near to the model's: of the groups that are ready, the one that begins first."""
        waiting = dict.fromkeys(self.groups, 0)
        for after in self.successors.values():
            for number in after:
                waiting[number] += 1
        ready = sorted((number for number, count in waiting.items() if not count), key=self._first)
        order: list[int] = []
        while ready:
            number = ready.pop(0)
            order.append(number)
            for other in self.successors[number]:
                waiting[other] -= 1
                if not waiting[other]:
                    ready.append(other)
            ready.sort(key=self._first)
        return order


# Vendors' passes over modules: each is run, and its result checked.


def run_pass(accelerator: Accelerator, hook: str, change: Callable[[Any], Any], module: Any) -> Any:
    """Runs a pass and returns its module; ``main`` must keep its type and stay the only function."""
    what = f"{hook} pass '{pass_name(change)}'"
    with vendors(accelerator.folder, what):
        after = change(module)
    if not tvm_api.is_module(after):
        raise AcceleratorError(f"{accelerator.folder}: {what} returned {type(after).__name__}; wanted the module")
    names = sorted(str(name.name_hint) for name in after.functions)
    if names != ["main"]:
        raise AcceleratorError(
            f"{accelerator.folder}: {what} left functions {', '.join(names) or 'none'}; wanted 'main' and nothing "
            "else: calls of Relax's or uaccel's operators, which everybody can compute"
        )
    if not tvm_api.same_type(after["main"], module["main"]):
        raise AcceleratorError(
            f"{accelerator.folder}: {what} made {after['main'].ty} of {module['main'].ty}; "
            "a pass keeps inputs and outputs"
        )
    return after


def pass_name(change: Any) -> str:
    """Returns the name of a pass: a function, an object with a name, or its class's name."""
    name = getattr(change, "name", getattr(change, "__name__", None))
    return name if isinstance(name, str) else type(change).__name__


# Rewriting: each region becomes a function that ``main`` calls; the CPU's part stays in ``main``.


@dataclass(frozen=True)
class EngineCall:
    """Describes what one accelerator computes at one place of the model, as the layer ``layer``.

    ``covers`` are the model's operator calls, none where an earlier call for the same claim has them; ``region`` is
    what is left of them for the accelerator. ``cost`` is what the operations state, in cycles.
    """

    accelerator: Accelerator
    operation: Operation | None
    region: Region
    layer: str
    covers: tuple[OpCall, ...]
    cost: float = 0


@dataclass
class Rewritten:
    """Holds the new module; ``calls`` by the name of the function, ``origins`` by new binding the model's binding.

    ``layer_names``: what the layer of a binding is called; bindings that are no layer of the model are missing.
    ``stands_for``: by (binding, output), the (binding, output) of the model whose value that must be.
    """

    module: Any = None
    calls: dict[str, EngineCall] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    layer_names: dict[str, str] = field(default_factory=dict)
    stands_for: dict[tuple[str, int], tuple[str, int]] = field(default_factory=dict)


def fields_of(var: Any) -> list[tuple[str, int]]:
    """Lists a variable's tensors, by name and number."""
    return [(str(var.name), number) for number in range(len(getattr(var.ty, "fields", [var])))]


def rewrite(graph: BindingGraph, groups: Sequence[Group]) -> Rewritten:
    """Writes a new module; every group becomes a call, an expansion, or stays the binding that it is."""
    work = _Rewrite(graph)
    work.done.module = tvm_api.replace_main(list(graph.parameters), lambda block: work.body(block, groups))
    return work.done


class _Rewrite:
    def __init__(self, graph: BindingGraph) -> None:
        self.graph = graph
        self.done = Rewritten()
        self.env: dict[Any, Any] = {}
        self.block: tvm_api.FunctionBlock

    def body(self, block: tvm_api.FunctionBlock, groups: Sequence[Group]) -> Any:
        self.block = block
        for group in groups:
            if not group.claims:
                self._copy(group)
            elif group.operation is not None and group.operation.expand is not None:
                _Expand(self, group, group.operation, group.operation.expand).run()
            else:
                self._call(group)
        return tvm_api.relax_substitute(self.graph.result, self.env)

    def _copy(self, group: Group) -> None:
        for index in sorted(group.members):
            var, expr = self.graph.bindings[index]
            self.env[var] = copy = self.block.emit(tvm_api.relax_substitute(expr, self.env), var.name)
            self.done.stands_for |= dict(zip(fields_of(copy), fields_of(var), strict=True))
            if self.graph.is_operator(index):
                self.done.layer_names[copy.name] = self.graph.name(index)

    def _call(self, group: Group) -> None:
        """Emits a call of a function that computes the whole group."""
        bindings = [self.graph.bindings[index] for index in sorted(group.members)]
        inputs, outputs = self.graph.boundary(group.members)
        covers = region_of(bindings, inputs, outputs, self.graph.names).calls
        layer = self.graph.region_name(group.members)
        parameters = [relax.Var(var.name, var.ty) for var in inputs]
        inside: dict[Any, Any] = dict(zip(inputs, parameters, strict=True))

        def body(block: tvm_api.FunctionBlock) -> Any:
            for var, expr in bindings:
                inside[var] = block.emit(tvm_api.relax_substitute(expr, inside), var.name)
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
        """Returns the variables of the new main function for those of the old one."""
        return [self.env.get(var, var) for var in inputs]

    def call(
        self, group: Group, function: Any, arguments: list[Any], name: str, layer: str, covers: tuple[OpCall, ...]
    ) -> Any:
        """Binds a call of an engine's function."""
        accelerator = group.claims[0].accelerator
        global_var = tvm_api.add_function(self.block, function, f"{accelerator.name}_{layer}")
        parameters, bindings, result = tvm_api.bindings_of(function)
        region = region_of(bindings, parameters, list(tvm_api.variables(result)), self.graph.names)
        cost = sum(claim.cost or 0 for claim in group.claims) if covers else 0
        self.done.calls[global_var.name_hint] = EngineCall(accelerator, group.operation, region, layer, covers, cost)
        var = self.block.emit(relax.Call(global_var, arguments), name)
        self.done.layer_names[var.name] = layer
        self.done.origins[var.name] = self.graph.bindings[group.claims[-1].root][0].name
        return var


class _Expand:
    """Lets an operation expand its claim to parts, some of them the CPU's."""

    def __init__(
        self, work: _Rewrite, group: Group, operation: Operation, expand: Callable[[Expansion, Region, list[Any]], Any]
    ) -> None:
        self.work = work
        self.group = group
        self.operation = operation
        self.expand = expand
        self.region = group.claims[0].region
        # The next call of the accelerator covers these: all of the claim, and nothing a second time.
        self.covers = self.region.calls

    def run(self) -> None:
        accelerator, root = self.group.claims[0].accelerator, self.region.root
        inputs, outputs = self.work.graph.boundary(self.group.members)
        what = f"expand of operation '{self.operation.name}', given {root},"
        with vendors(accelerator.folder, what):
            result = self.expand(Expansion(root.name, self.bind, self.call), self.region, self.work.given(inputs))
            if tvm_api.is_expression(result) and not tvm_api.is_var(result):
                result = self.bind(result, str(outputs[0].name))
        self._require(result, accelerator, what)
        self.work.env[outputs[0]] = result
        self.work.done.stands_for[result.name, 0] = (outputs[0].name, 0)

    def _require(self, result: Any, accelerator: Accelerator, what: str) -> None:
        """Checks that the result has the claim's type, and that the accelerator has a part in it."""
        if not tvm_api.is_var(result) or tvm_api.is_tuple_type(result):
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


def engine_function(
    group: Group, name: str, parameters: list[Any], body: Callable[[tvm_api.FunctionBlock], Any]
) -> Any:
    """Makes the function of an accelerator's region, and runs the vendor's own passes over it. The layer's name is an
    attribute of it, since TVM would merge two equal functions."""
    accelerator = group.claims[0].accelerator
    what = group.operation.name if group.operation is not None else "region"
    attributes = {"Codegen": accelerator.name, "Composite": f"{accelerator.name}.{what}", "layer": name}
    function = tvm_api.function_of_bindings(name, parameters, attributes, body)
    if not accelerator.on_region:
        return function
    module = tvm_api.module_of(function)  # Passes work on modules.
    for change in accelerator.on_region:
        module = run_pass(accelerator, "on_region", change, module)
    return module["main"].without_attr("global_symbol")


# Names of layers, as constraints, reports and C have them.


def layer_names(model: ImportedModel) -> Mapping[str, str]:
    """Names the layers of a model by binding, each name once."""
    unique = UniqueNames()
    return {
        var.name: unique.take(wanted_name(model, var.name, expr))
        for var, expr in tvm_api.main_bindings(model.module)[1]
        if tvm_api.is_operator_call(expr)
    }


def turned_names(before: Any, turned: LayoutsChanged, names: Mapping[str, str]) -> Mapping[str, str]:
    """Names layers after the choice of layouts; a binding that only permutes a result is not the layer."""
    operators = {var.name: expr.op for var, expr in tvm_api.main_bindings(before)[1] if tvm_api.is_call(expr)}
    found = {}
    for var, expr in tvm_api.main_bindings(turned.module)[1]:
        old = turned.origins.get(var.name, var.name)
        if old in names and tvm_api.is_call(expr) and expr.op == operators.get(old):
            found[var.name] = names[old]
    return found


def fused_names(fused: Fused, names: Mapping[str, str]) -> Mapping[str, str]:
    """Names layers after float fusion; a binding that only permutes a fused layer's result is not the layer."""
    moved = set(fused.origins.values())
    found = {name: names[old] for name, old in fused.origins.items() if old in names}
    return found | {name: layer for name, layer in names.items() if name not in moved}


def wanted_name(model: ImportedModel, binding: str, call: Any) -> str:
    """Returns the binding's name; one that no tensor of the model has is called after its operator and its origin."""
    origin = model.origins.get(binding)
    if origin is not None and binding not in model.tensors:
        return part_name(call, origin.index)
    return c_identifier(binding)


def part_name(call: Any, operator: int) -> str:
    """Names a call that is not the whole of a model's operator."""
    return c_identifier(f"{call.op.name.rpartition('.')[2]}_{operator}")
