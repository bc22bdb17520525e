"""The main function of a module as a graph of its bindings: who uses what."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.tvm_api import is_operator_call, is_tuple_get_item, main_bindings, main_result, variables

RESULT = -1
"""Stands for the function's result among the users of a binding."""


@dataclass(frozen=True)
class Graph:
    """``uses[i]``: the bindings that binding i reads. ``users[i]``: those that read it, ``RESULT`` among them.

    ``names``: what layers are called, by the name of their binding.
    """

    parameters: Sequence[Any]
    bindings: Sequence[tuple[Any, Any]]
    result: Any
    uses: Sequence[frozenset[int]]
    users: Sequence[frozenset[int]]
    names: Mapping[str, str]

    def name(self, index: int) -> str:
        """Of the layer; what is no layer has its binding's."""
        binding = str(self.bindings[index][0].name)
        return self.names.get(binding, binding)

    def is_operator(self, index: int) -> bool:
        """A call of an operator; not a tuple or a field of one, which are no work."""
        return is_operator_call(self.bindings[index][1])

    def operators(self, members: Iterable[int]) -> list[int]:
        """Those of the members that are work, in order."""
        return [index for index in sorted(members) if self.is_operator(index)]

    def region_name(self, members: Iterable[int]) -> str:
        """The name of the layer that these become together."""
        first, *_, last = (self.name(index) for index in self.operators(members) * 2)
        return first if first == last else f"{first}_to_{last}"

    def boundary(self, members: Iterable[int]) -> tuple[list[Any], list[Any]]:
        """The variables that members read from outside, and those of their own that are read outside."""
        inside = set(members)
        bound = {self.bindings[index][0] for index in inside}
        read = [var for index in sorted(inside) for var in variables(self.bindings[index][1])]
        inputs = list(dict.fromkeys(var for var in read if var not in bound))
        return inputs, [self.bindings[index][0] for index in sorted(inside) if not self.users[index] <= inside]

    def closed(self, members: Iterable[int]) -> frozenset[int]:
        """The members with the fields that are taken of their tuples: those go where the tuple goes."""
        found = set(members)
        for index, (_, expr) in enumerate(self.bindings):
            if is_tuple_get_item(expr) and self.uses[index] <= found and self.uses[index]:
                found.add(index)
        return frozenset(found)


def graph_of(module: Any, names: Mapping[str, str]) -> Graph:
    """Of ``main``."""
    parameters, bindings = main_bindings(module)
    position = {var: index for index, (var, _) in enumerate(bindings)}
    uses = [frozenset(position[var] for var in variables(expr) if var in position) for _, expr in bindings]
    users: dict[int, set[int]] = defaultdict(set)
    for index, used in enumerate(uses):
        for source in used:
            users[source].add(index)
    result = main_result(module)
    for var in variables(result):
        if var in position:
            users[position[var]].add(RESULT)
    return Graph(parameters, bindings, result, uses, [frozenset(users[i]) for i in range(len(bindings))], names)
