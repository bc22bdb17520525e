"""From node to node of a model's graph: what each becomes in Relax, and in one error all that cannot be converted."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from uaccel.errors import ModelError
from uaccel.frontend.budget import Budget
from uaccel.frontend.checks import ADVICE, first_line, unsupported
from uaccel.model import Origin, TensorSpec, c_identifier, unique_names
from uaccel.tvm_api import TYPE_ERRORS, FunctionBlock, ModuleBuilder, main_bindings, relax
from uaccel.tvm_api.converters import TvmConversionError
from uaccel.tvm_api.refusals import plain

N = TypeVar("N")


@dataclass(kw_only=True)
class Walk(abc.ABC, Generic[N]):
    """Of one model. ``tensors`` and ``origins`` by the names of variables; ``warnings`` do not end the import."""

    refusals: ClassVar[tuple[type[Exception], ...]] = (ModelError, *TYPE_ERRORS)
    """What converters and type rules raise where a node does not fit."""

    path: Path
    budget: Budget | None = None
    tensors: dict[str, TensorSpec] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    block: FunctionBlock = field(init=False)

    @abc.abstractmethod
    def convert(self, node: N) -> None:
        """Make expressions of a node, and bind them."""

    @abc.abstractmethod
    def where(self, node: N) -> str:
        """How errors call it."""

    @abc.abstractmethod
    def stand_in(self, node: N) -> None:
        """Give the results of a node that cannot be converted, so that later ones are checked as well."""

    @abc.abstractmethod
    def results(self) -> Sequence[Any]:
        """What the module returns."""

    def begin(self) -> None:
        """The block is open, and no node converted yet."""

    def check(self, module: Any) -> None:
        """Note what is wrong with the whole."""

    def module(self, parameters: Sequence[Any], nodes: Iterable[N]) -> Any:
        """``main`` as a module."""
        builder = ModuleBuilder()
        with builder.function(list(parameters)) as self.block:
            self.begin()
            for node in nodes:
                self._visit(node)
            results = [] if self.problems else self.results()
            self.block.finish(results[0] if len(results) == 1 else relax.Tuple(list(results)))
        self._attribute_intermediates(builder.module)
        self.check(builder.module)
        if self.problems:
            raise unsupported(self.path, self.problems)
        return builder.module

    def _visit(self, node: N) -> None:
        if self.budget is not None:
            self.budget.time()
        try:
            self.convert(node)
        except self.refusals as error:
            reason = str(error) if isinstance(error, ModelError) else plain(first_line(error))
            self.problems.append(f"{self.where(node)}: {reason}")
            self.stand_in(node)

    def bind(self, expr: Any, name: str, origin: Origin, spec: TensorSpec) -> Any:
        """The variable of what a node computes."""
        var = self.block.emit(expr, name)
        self.tensors[var.name] = spec
        self.origins[var.name] = origin
        return var

    def _attribute_intermediates(self, module: Any) -> None:
        """A converter may need several bindings for one node; they come before the one that is named."""
        origin = None
        for var, _ in reversed(main_bindings(module)[1]):
            origin = self.origins.get(var.name, origin)
            if origin is not None:
                self.origins.setdefault(var.name, origin)


def parameters_of(specs: Sequence[TensorSpec]) -> list[Any]:
    """A variable for each input, with names that C takes and that differ."""
    names = unique_names(c_identifier(spec.name) for spec in specs)
    return [
        relax.Var(name, relax.TensorType(spec.info.shape, spec.info.dtype))
        for name, spec in zip(names, specs, strict=True)
    ]


def as_list(result: Any) -> list[Any]:
    """What a converter gives: one expression, or several."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


@contextlib.contextmanager
def by_tvm(advice: str = ADVICE) -> Iterator[None]:
    """Around TVM's own converter: what it refuses is a ModelError with its words."""
    try:
        yield
    except TvmConversionError as error:
        raise ModelError(f"{error}; {advice}") from error
