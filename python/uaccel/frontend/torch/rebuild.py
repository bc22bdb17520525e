"""A file's program as one of PyTorch's, made operator by operator, for inputs of fixed shapes.

Nothing that the file says of results is believed: each operator says what it makes of what it is given. So there are no
symbols in the program, numbers that were worked out of extents are numbers, and a file that says otherwise is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import getitem
from typing import Any, Final

from uaccel.errors import ModelError
from uaccel.frontend.checks import ADVICE, NO_CONVERTER, first_line
from uaccel.frontend.torch.arguments import DTYPES, Arguments
from uaccel.frontend.torch.operators import ARITHMETIC, resolved
from uaccel.frontend.torch.program_file import FileGraph, FileNode, Value
from uaccel.frontend.torch.refusals import check_extents
from uaccel.frontend.torch.serialised import Expression, MisfitError, TensorMeta, need
from uaccel.model import Shape

_INTEGERS: Final = range(-(1 << 63), 1 << 63)
_HIGHER: Final = "torch.ops.higher_order."
_WITHOUT_GRADIENTS: Final = _HIGHER + "wrap_with_set_grad_enabled"
_WITH_AUTOCAST: Final = _HIGHER + "wrap_with_autocast"

Problem = tuple[int, FileNode, str]


class Builder:
    """``symbols``: what each symbol of the file is; ``known``: whether an operator has a converter.

    ``numbers``: the place in the file of the operator that each node is, or is a part of.
    """

    def __init__(self, torch: Any, symbols: Mapping[str, int], known: Callable[[Any], bool]) -> None:
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.graph = torch.fx.Graph()
        self.numbers: dict[str, int] = {}
        self._torch = torch
        self._symbols = symbols
        self._known = known
        self._table = torch.export.default_decompositions()
        self._mode = FakeTensorMode(shape_env=ShapeEnv(), allow_fallback_kernels=False, static_shapes=True)
        self._tensors: dict[Any, Any] = {}
        self._reserved: set[str] = set()
        self._names: set[str] = set()

    def placeholder(self, name: str, shape: Shape, strides: Shape | None, dtype: int) -> Any:
        """The node of an input: a tensor without elements."""
        need(name not in self._names, f"program has two inputs {name!r}")
        kind = getattr(self._torch, DTYPES[dtype])
        with self._mode:
            if strides is None:
                value = self._torch.empty(shape, dtype=kind)
            else:
                value = self._torch.empty_strided(shape, strides, dtype=kind)
        node = self.graph.placeholder(name)
        self._name(node, name)
        self._keep(node, value)
        return node

    def run(self, file: FileGraph, values: dict[str, Any], outputs: tuple[Value, ...]) -> list[Any]:
        """All operators of the file, and then the nodes that ``outputs`` name. ``values``: the inputs' nodes."""
        self._reserved = {found for node in file.nodes for found in (node.name, *node.results) if found}
        problems = [f"{_shown(number, node)}: {text}" for number, node, text in self._unknown(file)]
        if problems:
            raise UnsupportedError(problems)
        return self._graph(file, values, outputs, None)

    def _unknown(self, file: FileGraph) -> Iterator[Problem]:
        """Operators that no program may have."""
        number = 0
        for node in file.nodes:
            inner = [argument.value[1] for argument in node.inputs if argument.value[0] == "as_graph"]
            if node.target in (_WITHOUT_GRADIENTS, _WITH_AUTOCAST):
                yield from ((number, *problem[1:]) for graph in inner for problem in self._unknown(graph))
            elif inner or node.target.startswith(_HIGHER):
                yield number, node, "control flow cannot be compiled; export without it"
            elif node.target not in ARITHMETIC and self._operator(node) is None:
                yield number, node, f"{NO_CONVERTER}; {ADVICE}"
            number += node.lines

    def _operator(self, node: FileNode) -> Any:
        return resolved(self._torch, node.target, self._table, self._known)

    def _graph(
        self, file: FileGraph, values: dict[str, Any], outputs: tuple[Value, ...], inside: int | None
    ) -> list[Any]:
        """``inside``: the place of the operator that this graph is a part of."""
        number = 0
        for node in file.nodes:
            place = number if inside is None else inside
            try:
                self._node(node, values, file.tensors, place, outer=inside is None)
            except (MisfitError, ModelError) as error:
                raise UnsupportedError([f"{_shown(place, node)}: {error}"]) from error
            number += node.lines
        read = Arguments(self._torch, values)
        return [read.value(value, f"output {place}") for place, value in enumerate(outputs)]

    def _node(
        self, node: FileNode, values: dict[str, Any], declared: Mapping[str, TensorMeta], place: int, *, outer: bool
    ) -> None:
        for found in node.results:
            need(found not in values, f"the name {found!r} is taken")
        if node.target in ARITHMETIC:
            self._arithmetic(node, values)
        elif node.target.startswith(_HIGHER):
            results = self._region(node, values, place)
            need(
                len(results) == len(node.results),
                f"it makes {len(results)} results, the file names {len(node.results)}",
            )
            values.update({name: value for name, value in zip(node.results, results, strict=True) if name})
        else:
            made = self._called(node, values, place, outer=outer)
            values.update(made)
            for name, value in made.items():
                self._check(value, declared.get(name))

    def _arithmetic(self, node: FileNode, values: dict[str, Any]) -> None:
        read = Arguments(self._torch, values)
        operands = [read.value(argument.value, "an operand") for argument in node.inputs]
        need(all(isinstance(value, (int, float)) for value in operands), "it computes with what is no number")
        try:
            result = ARITHMETIC[node.target](*operands)
        except (ArithmeticError, TypeError, ValueError) as error:
            raise MisfitError(f"it cannot be computed: {error}") from error
        need(isinstance(result, float) or result in _INTEGERS, "its result has more than 64 bits")
        need(len(node.results) == 1 and not node.several, "it has one result")
        values[str(node.results[0])] = result

    def _region(self, node: FileNode, values: dict[str, Any], place: int) -> list[Any]:
        """What a mode makes of a program of its own: the same, where the mode is about gradients."""
        read = Arguments(self._torch, values)
        where = next(place for place, one in enumerate(node.inputs) if one.value[0] == "as_graph")
        modes = [read.value(one.value, "a mode") for one in node.inputs[:where]]
        off = node.target == _WITHOUT_GRADIENTS or (len(modes) == 4 and modes[2] is False)
        need(off, "autocast cannot be compiled; export without it")
        inner: FileGraph = node.inputs[where].value[1]
        given = [read.value(one.value, "an operand") for one in node.inputs[where + 1 :]]
        tensors = [held if kind == "as_tensor" and isinstance(held, dict) else {} for kind, held in inner.inputs]
        names = [tensor.get("name") for tensor in tensors]
        named = [found for found in names if isinstance(found, str)]
        need(len(named) == len(names) == len(given), "its program has other inputs")
        return self._graph(inner, dict(zip(named, given, strict=True)), inner.outputs, place)

    def _called(self, node: FileNode, values: dict[str, Any], place: int, *, outer: bool) -> dict[str, Any]:
        """The results that have names."""
        operator, nodes = self._operator(node), self._torch.fx.Node
        args, kwargs = Arguments(self._torch, values).call(operator._schema, node.inputs)
        given = self._torch.utils._pytree.tree_map_only(nodes, self._tensors.__getitem__, (args, kwargs))
        try:
            with self._mode, self._torch.no_grad():
                result = operator(*given[0], **given[1])
        except Exception as error:  # whatever the operator says
            raise ModelError(f"PyTorch cannot compute it: {first_line(error)}") from error
        if not node.results:
            need(not operator._schema.is_mutable, "it changes what it reads, and has no result")
            return {}
        if isinstance(result, (int, float)):
            return {str(node.results[0]): result}
        several = isinstance(result, (list, tuple))
        results = list(result) if several else [result]
        for value in results:
            need(
                isinstance(value, self._torch.Tensor),
                "it makes a number, not a tensor, at run time; firmware needs it fixed",
            )
            check_extents(value, "its result")
        need(
            len(results) == len(node.results) and several == node.several,
            f"it makes {len(results)} results, the file names {len(node.results)}",
        )
        made = self._emit(operator, args, kwargs, node.name, place, result, outer=outer)
        if not several:
            return {str(node.results[0]): made}
        named = {}
        for which, (name, value) in enumerate(zip(node.results, results, strict=True)):
            if name:
                number = place + 1 + which if outer else place
                named[name] = self._emit(getitem, [made, which], {}, name, number, value, outer=outer)
        return named

    def _emit(self, operator: Any, args: Any, kwargs: Any, name: str, place: int, result: Any, *, outer: bool) -> Any:
        node = self.graph.create_node("call_function", operator, tuple(args), kwargs)
        self._name(node, name if outer and name not in self._names else self._fresh(name))
        self._keep(node, result)
        self.numbers[node.name] = place
        return node

    def _fresh(self, name: str) -> str:
        """A name that nobody has nor will have."""
        found, count = name, 0
        while found in self._names or found in self._reserved:
            count += 1
            found = f"{name}_{count}"
        return found

    def _name(self, node: Any, name: str) -> None:
        """The file's, where PyTorch would choose another."""
        self._names.add(name)
        node.name = name

    def _keep(self, node: Any, value: Any) -> None:
        """What a node makes, and what it is at that time: later operators may change it in place."""
        self._tensors[node] = value
        with self._mode, self._torch.no_grad():
            node.meta["val"] = self._torch.utils._pytree.tree_map_only(
                self._torch.Tensor, lambda tensor: tensor.detach(), value
            )

    def _check(self, node: Any, declared: TensorMeta | None) -> None:
        """That the file says of a result what is so."""
        if declared is None or not isinstance(node, self._torch.fx.Node):
            return
        value = node.meta["val"]
        said = [
            self._symbols.get(extent) if isinstance(extent, str) and not isinstance(extent, Expression) else extent
            for extent in declared.shape
        ]
        same = len(said) == len(value.shape) and all(
            wanted is None or isinstance(wanted, Expression) or wanted == extent
            for wanted, extent in zip(said, value.shape, strict=True)
        )
        kind = str(value.dtype).removeprefix("torch.")
        if not same or DTYPES.get(declared.dtype) != kind:
            shown = ",".join("?" if isinstance(extent, Expression) else str(extent) for extent in declared.shape)
            made = ",".join(map(str, value.shape))
            raise MisfitError(
                f"the file says {DTYPES.get(declared.dtype, 'no type')} [{shown}], it makes {kind} [{made}]"
            )


class UnsupportedError(Exception):
    """Operators that cannot be compiled, each in words."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def _shown(number: int, node: FileNode) -> str:
    target = node.target.removeprefix("torch.ops.")
    return f'operator {number} {target[:120]} ("{node.name}")'
