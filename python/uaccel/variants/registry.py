"""Which kernels there are for a call of an operator on a CPU, besides the portable ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from uaccel.ops.base import IntegerOperator, Site
from uaccel.ops.kernel import Kernel
from uaccel.variants.target import Target

Maker = Callable[[Site[Any]], "Kernel | None"]
F = TypeVar("F", bound=Maker)

_OFFERS: dict[str, list[tuple[tuple[str, ...], Maker]]] = {}


def offers(operator: type[IntegerOperator[Any]], requires: tuple[str, ...]) -> Callable[[F], F]:
    """Decorator: a function that makes a kernel for a call, or None where the kernel would not be exact."""

    def register(maker: F) -> F:
        _OFFERS.setdefault(operator.name, []).append((requires, maker))
        return maker

    return register


def candidates(operator: IntegerOperator[Any], site: Site[Any], target: Target) -> Sequence[Kernel]:
    """Every way the CPU can compute it: those of its features first, portable ones last."""
    makers = [maker for requires, maker in _OFFERS.get(operator.name, []) if target.has(requires)]
    special = [kernel for kernel in (maker(site) for maker in makers) if kernel is not None]
    return [*special, *operator.kernels(site)]
