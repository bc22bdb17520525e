"""One node of a program after the other, each by a converter of ours or by TVM's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from uaccel.errors import ModelError, need
from uaccel.frontend.checks import ADVICE, NO_CONVERTER, first_line
from uaccel.frontend.torch.convert import CONVERTERS, Context, Expr, arguments
from uaccel.frontend.torch.decompose import name_of, namespace_of
from uaccel.frontend.torch.normalise import fold, following
from uaccel.frontend.torch.program import DTYPES, info_of_value
from uaccel.frontend.torch.refusals import check_arguments, check_operator
from uaccel.frontend.walk import Walk, by_tvm
from uaccel.model import Origin, TensorSpec
from uaccel.ops.base import constant, info_of
from uaccel.tvm_api import is_constant, is_tuple_type, is_var, relax
from uaccel.tvm_api.converters import TorchConverter


@dataclass(frozen=True)
class Made:
    """What a variable of the module is."""

    name: str
    origin: Origin
    spec: TensorSpec


@dataclass(kw_only=True)
class TorchWalk(Walk[Any]):
    """``numbers``: of the nodes of the user's own program, by name. ``context`` knows inputs and weights.

    ``made``: what the variables of the module are, which get their names when all is bound.
    """

    refusals: ClassVar = (Exception,)  # of arguments that make no sense, converters and TVM's type rules raise anything

    context: Context
    numbers: Mapping[str, int]
    outputs: Sequence[Any]
    tvm: TorchConverter = field(init=False)
    inputs: frozenset[Any] = field(init=False)
    made: dict[Any, Made] = field(default_factory=dict)

    def begin(self) -> None:
        self.context.block = self.block
        self.tvm = TorchConverter(self.block.builder)
        self.inputs = frozenset(value for value in self.context.values.values() if is_var(value))

    def results(self) -> list[Expr]:
        return [self.context.expr(node) for node in self.outputs]

    def where(self, node: Any) -> str:
        origin = self._origin(node)
        return f'operator {origin.index} {_shown(node)} ("{origin.tensor}")'

    def convert(self, node: Any) -> None:
        check_operator(node, ours=_is_ours(node))
        if self._is_known(node):
            self.context.values[node] = self._computed(node)
        else:
            self.context.values[node] = self._bound(node, self._converted(node), self._origin(node))

    def _origin(self, node: Any) -> Origin:
        """The node of the user's program that this one is, or is a part of."""
        names = [node.name, *(source.name for source in reversed(node.meta.get("from_node", ())))]
        name = next((name for name in names if name in self.numbers), node.name)
        operator = name_of(node.target).partition(".")[0].strip("_")
        return Origin(self.numbers.get(name, len(self.numbers)), operator, name)

    def _is_known(self, node: Any) -> bool:
        """Whether it can be computed here and now. Weights stay the integers that they are in the file."""
        if name_of(node.target).startswith("dequantize") and len(node.meta["val"].shape) > 0:
            return False
        return all(self._is_constant(self.context.values.get(entry)) for entry in node.all_input_nodes)

    def _is_constant(self, value: Any) -> bool:
        if isinstance(value, (list, tuple)):
            return all(self._is_constant(entry) for entry in value)
        return isinstance(value, self.context.torch.Tensor)

    def _computed(self, node: Any) -> Any:
        torch = self.context.torch
        with torch.no_grad():
            args, kwargs = torch.utils._pytree.tree_map_only(
                torch.fx.Node, self.context.values.__getitem__, (node.args, node.kwargs)
            )
            try:
                return node.target(*args, **kwargs)
            except Exception as error:  # whatever the operator says
                raise ModelError(f"PyTorch cannot compute it from its constants: {first_line(error)}") from error

    def _converted(self, node: Any) -> Expr:
        operator, namespace = name_of(node.target), namespace_of(node.target)
        if operator == "getitem":
            return _item(self.context, node)
        ours = CONVERTERS.find(_full_name(node.target), node)
        if ours is not None:
            return ours(self.context, node)
        need(namespace == "aten" and self.tvm.knows(operator), f"{NO_CONVERTER}; {ADVICE}")
        check_arguments(node)
        return self._by_tvm(operator, node)

    def _by_tvm(self, operator: str, node: Any) -> Expr:
        meaning = following(self.context, node)
        for entry in node.all_input_nodes:
            value = self.context.values[entry]
            self.tvm.define(entry, self.context.expr(entry) if self.context.is_constant(entry) else value)
        late = None
        if meaning is not None:
            given = arguments(node)
            weight, bias = fold(self.context, node, meaning)
            self.tvm.define(given["weight"], constant(weight.numpy()))
            if given["bias"] is not None:
                self.tvm.define(given["bias"], constant(bias.numpy()))
            else:
                late = bias
        with by_tvm():
            value = self.tvm.convert(operator, node)
        if late is None:
            return value
        spread = (1, -1) + (1,) * (len(node.meta["val"].shape) - 2)
        return relax.op.add(value, constant(late.numpy().reshape(spread)))

    def _bound(self, node: Any, value: Any, origin: Origin) -> Any:
        """Variables for what a node computes: one, or a list."""
        if isinstance(value, (list, tuple)):
            return [self._bound(node, entry, origin) for entry in value]
        if is_constant(value):
            return self.context.torch.from_numpy(value.value.numpy().copy())
        var = value if is_var(value) else self.context.block.emit(value, "lv")
        if is_tuple_type(var):
            return var
        declared = node.meta["val"]
        if hasattr(declared, "shape"):
            wanted, computed = info_of_value(declared), info_of(var)
            need(wanted == computed, f"the program declares {wanted}, TVM's converter computes {computed}; {ADVICE}")
        if var not in self.made and var not in self.inputs:
            spec = TensorSpec(origin.tensor, info_of(var), self.context.quantised.get(node))
            self.made[var] = Made(f"{origin.op}_{origin.index}", origin, spec)
        return var

    def stand_in(self, node: Any) -> None:
        values = node.meta["val"]
        several = isinstance(values, (list, tuple))
        self.context.values[node] = [self._stand_in(value) for value in values] if several else self._stand_in(values)

    def _stand_in(self, value: Any) -> Any:
        if not hasattr(value, "shape") or any(not isinstance(extent, int) for extent in value.shape):
            return self.context.block.stand_in((1,), "float32")
        info = info_of_value(value)
        return self.context.block.stand_in(info.shape, info.dtype if info.dtype in DTYPES else "float32")


def _shown(node: Any) -> str:
    """An operator with its namespace, a Python function by its name alone."""
    return str(node.target) if hasattr(node.target, "_schema") else name_of(node.target)


def _full_name(target: Any) -> str:
    return f"{namespace_of(target)}.{name_of(target)}"


def _is_ours(node: Any) -> bool:
    return _full_name(node.target) in CONVERTERS.names


def known_operators() -> Callable[[Any], bool]:
    """Whether a converter takes an operator, ours or TVM's."""
    by_tvm = frozenset(TorchConverter(None).operators())
    return lambda target: name_of(target) in by_tvm or _full_name(target) in CONVERTERS.names


def _item(context: Context, node: Any) -> Expr:
    source, number = node.args
    values = context.values[source]
    if isinstance(values, (list, tuple)):
        need(number < len(values), f"result {number} of {name_of(source.target)} is not supported; {ADVICE}")
        return values[number]
    if is_tuple_type(values):
        return relax.TupleGetItem(values, number)
    need(number == 0, f"result {number} of {name_of(source.target)} is not supported; {ADVICE}")
    return values
