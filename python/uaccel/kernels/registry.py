"""Registers the kernels that families offer for an operator, and lists those that a CPU can run.

An offer is a function that looks at one call of the operator: it makes a kernel, or declines where that would not be
exact. So a list of candidates holds nothing but kernels with the same result, and any of them may be picked.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from uaccel.errors import InternalError
from uaccel.ops.exact import TFLITE, rounding_of
from uaccel.ops.kernel import Kernel
from uaccel.ops.operator import Computable, IntegerOperator, Site
from uaccel.ops.storage import is_int4
from uaccel.util.favour import Favour

# The CPU that kernels are compiled for, and the features that they may use.


@dataclass(frozen=True)
class Target:
    """Describes a CPU: ``cpu`` is its maker's name for it.

    ``features`` are those of a board file, with ``embedded`` for every board and ``rv32`` for RISC-V.
    """

    cpu: str = ""
    features: frozenset[str] = frozenset()

    @classmethod
    def of(cls, cpu: str, features: Iterable[str]) -> Target:
        return cls(cpu, frozenset(features))

    def has(self, requires: Iterable[str]) -> bool:
        return self.features.issuperset(requires)


PORTABLE = Target()  # Any CPU.

# Required by kernels for any CPU of a board. The host computer uses the portable kernels, which take no scratch memory.
EMBEDDED: Final = ("embedded",)


# The offers: which kernels there are for a call of an operator on a CPU, besides the portable ones.

Maker = Callable[[Site[Any]], "Kernel | None"]
F = TypeVar("F", bound=Maker)


@dataclass(frozen=True)
class KernelOffer:
    """Records one call of `offers`, whose parameters its fields are."""

    requires: tuple[str, ...]
    float32: tuple[str, ...] | None
    maker: Maker
    rank: int
    favour: Favour | None = None
    weight_bits: int = 8

    def needs(self, site: Site[Any]) -> tuple[str, ...] | None:
        """Returns what a call requires of the CPU; None where the kernel does not round as the call does."""
        if rounding_of(site.attrs) == TFLITE:
            return self.requires
        return None if self.float32 is None else (*self.requires, *self.float32)


_OFFERS: dict[str, list[KernelOffer]] = {}


def offers(
    operator: type[IntegerOperator[Any]],
    requires: tuple[str, ...],
    float32: tuple[str, ...] | None = None,
    favour: Favour | None = None,
    weight_bits: int = 8,
    *,
    rank: int,
) -> Callable[[F], F]:
    """Decorates a function that makes a kernel for a call, or returns None where the kernel would not be exact.

    ``float32``: what the CPU needs besides for calls that round in single precision. Without it the function is not
    asked about them. With ``favour`` it is asked only where a user favours that. ``weight_bits`` is 4 for kernels that
    read two weights from a byte: they alone are asked where the model has such weights, unless a user favours speed.

    ``rank`` is the offer's place among those of its operator: the lowest is asked first, and wins where two cost the
    same. No two are equal, so the order in which modules are imported decides nothing. A CPU with Helium has the DSP
    extension as well, so Helium has 100 to 199, DSP 200 to 299, RISC-V vectors 300 to 399, portable C 400 and above.
    """

    def register(maker: F) -> F:
        others = _OFFERS.setdefault(operator.name, [])
        taken = next((offer for offer in others if offer.rank == rank), None)
        if taken is not None:
            first, second = (f"{one.__module__}.{one.__qualname__}" for one in (taken.maker, maker))
            raise InternalError(
                f"{first} and {second} both offer {operator.name} at rank {rank}; give one of them another"
            )
        insort(others, KernelOffer(requires, float32, maker, rank, favour, weight_bits), key=lambda offer: offer.rank)
        return maker

    return register


def candidates(
    operator: Computable, site: Site[Any], target: Target, favour: Favour = Favour.balanced
) -> Sequence[Kernel]:
    """Lists every kernel that the CPU can run for a call: by rank of their offers, portable ones last."""
    if is_int4(site) and favour is Favour.speed:
        site = replace(site, attrs=replace(site.attrs, weight_bits=8))
    bits = 4 if is_int4(site) else 8
    offered_here = [offer for offer in _OFFERS.get(operator.name, []) if offer.weight_bits == bits]
    asked = [offer for offer in offered_here if offer.favour in (None, favour)]
    offered = [(offer.maker, offer.needs(site)) for offer in asked]
    makers = [maker for maker, needs in offered if needs is not None and target.has(needs)]
    special = [kernel for kernel in (maker(site) for maker in makers) if kernel is not None]
    return [*special, *operator.kernels(site)]


def has_fast_kernels(operator: Computable, target: Target) -> bool:
    """Whether some call of the operator has kernels of the CPU's own, beyond C for any CPU."""
    asked = (offer.requires for offer in _OFFERS.get(operator.name, []))
    return any(target.has(requires) for requires in asked if not set(requires) <= set(EMBEDDED))
