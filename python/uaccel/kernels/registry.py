"""Registers the kernels that families offer for an operator, and lists those that a CPU can run.

An offer is a function that looks at one call of the operator: it makes a kernel, or declines where that would not be
exact. So a list of candidates holds nothing but kernels with the same result, and any of them may be picked.
`refusal` tells a user why the kernels of a CPU's own decline a call.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from uaccel.board import Memory
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

    ``features`` are those of a board file, with ``embedded`` for every board and ``rv32`` for RISC-V. ``memories`` are
    the board's, some of which it waits for.
    """

    cpu: str = ""
    features: frozenset[str] = frozenset()
    memories: tuple[Memory, ...] = ()

    @classmethod
    def of(cls, cpu: str, features: Iterable[str], memories: Iterable[Memory] = ()) -> Target:
        return cls(cpu, frozenset(features), tuple(memories))

    def has(self, requires: Iterable[str]) -> bool:
        return self.features.issuperset(requires)


PORTABLE = Target()  # Any CPU.

# Required by kernels for any CPU of a board. The host computer uses the portable kernels, which take no scratch memory.
EMBEDDED: Final = ("embedded",)


# What an offer's function, or what it asks, raises to decline a call that a user might change. A function returns None
# where its kernel is not meant for such calls: one for windows of 3x3 has nothing to say of others.


class DeclinedError(Exception):
    """Tells why a kernel does not take a call, and what would mend that; both are parts of sentences."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


class OtherTypeError(DeclinedError):
    """Declines a call of other types, ``given``, than the kernel's, ``taken``."""

    def __init__(self, given: str, *taken: str) -> None:
        super().__init__(f"its elements are {given}, not {' or '.join(taken)}", f"quantise the model to {taken[0]}")
        self.given, self.taken = given, taken


def check_type(site: Site[Any], *taken: str) -> None:
    """Declines a call whose result has none of the types."""
    if site.output.dtype not in taken:
        raise OtherTypeError(site.output.dtype, *taken)


def check_channels(count: int, least: int) -> None:
    """Declines a call of fewer channels than are computed together."""
    if count < least:
        raise DeclinedError(
            f"it has {count} channel{'s' * (count > 1)}, and {least} are computed together", "give it more channels"
        )


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
    """Decorates a function that makes a kernel for a call; else it returns None or raises `DeclinedError`.

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
    special = [kernel for kernel in (made(maker, site) for maker in makers) if kernel is not None]
    return [*special, *operator.kernels(site)]


def made(maker: Maker, site: Site[Any]) -> Kernel | None:
    """Returns the kernel that a function makes for a call; None where it declines."""
    try:
        return maker(site)
    except DeclinedError:
        return None


# Why the kernels of the CPU's own decline a call.

NO_FORM: Final = "no kernel has a form for such shapes"
UNKNOWN: Final = "compare the shapes with those of layers that are taken"


def _native(operator: Computable, target: Target) -> list[KernelOffer]:
    """Lists the offers of the CPU's best family: by the feature that the offer of the lowest rank requires."""
    offered = [offer for offer in _OFFERS.get(operator.name, []) if not set(offer.requires) <= set(EMBEDDED)]
    offered = [offer for offer in offered if target.has(offer.requires) and offer.favour is None]
    return [offer for offer in offered if offer.requires[0] == offered[0].requires[0]]


def is_best(operator: Computable, kernel: Kernel, target: Target) -> bool:
    """Whether a kernel is of the CPU's best family."""
    return any(offer.requires[0] in kernel.requires for offer in _native(operator, target)[:1])


def refusal(
    operator: Computable, site: Site[Any], target: Target, favour: Favour = Favour.balanced
) -> DeclinedError | None:
    """Tells why no kernel of the CPU's best family takes a call; None where one does, or where the operator has none.

    Where several decline, the first tells why, but for those that are for other types.
    """
    native = _native(operator, target)
    if native and is_int4(site):
        if favour is not Favour.speed:
            return DeclinedError(
                "its weights have four bits, which C for any CPU reads", "--favour speed stores them in bytes"
            )
        site = replace(site, attrs=replace(site.attrs, weight_bits=8))
    told = [_declined(offer, site, target) for offer in native]
    if not told or None in told:
        return None
    reasons = [one for one in told if one is not None and one.reason != NO_FORM]
    types = [one for one in reasons if isinstance(one, OtherTypeError)]
    others = [one for one in reasons if not isinstance(one, OtherTypeError)]
    if others or not types:
        return (others or [DeclinedError(NO_FORM, UNKNOWN)])[0]
    return OtherTypeError(types[0].given, *dict.fromkeys(kind for one in types for kind in one.taken))


def _declined(offer: KernelOffer, site: Site[Any], target: Target) -> DeclinedError | None:
    needs = offer.needs(site)
    if needs is None or not target.has(needs):
        return DeclinedError("it rounds in single precision", "convert it with TFLite's rounding")
    try:
        return None if offer.maker(site) is not None else DeclinedError(NO_FORM, UNKNOWN)
    except DeclinedError as declined:
        return declined
