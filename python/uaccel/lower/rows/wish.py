"""Gives the program that the user asks for: layers by rows for less RAM, or where that costs next to nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from uaccel.errors import ModelError
from uaccel.kernels.choice import Estimated, Selection
from uaccel.lower.kernel_swaps import code_bytes, place_small, place_with_less_scratch
from uaccel.lower.placement import place
from uaccel.lower.program import Program
from uaccel.lower.rows.layer import apply
from uaccel.lower.rows.search import ANY, ChainPlan, RowSearch, least, require_feedable
from uaccel.util.favour import Favour

SLOWER: Final = 1.13  # How much more estimated time ``--favour ram`` may cost: what is measured stays below 15 %.
TRIES: Final = 6  # An arena may exceed what is needed at once: so many times the limit is lowered by the excess.


@dataclass(frozen=True)
class RamWish:
    """Holds what the user asks of RAM. ``limit``: bytes for inputs, outputs, state and the arena; None without one.

    ``apart``: the bytes of these outside the arena. ``feed``: the caller hands over an input's rows. ``whole``: no
    layer runs by rows that nothing else asks for.
    """

    limit: int | None = None
    apart: int = 0
    feed: bool = False
    workspace_io: bool = False
    whole: bool = False


def by_rows(program: Program, selection: Selection, wish: RamWish) -> Program:
    """The program with some layers by rows, as the user asks. Where nothing is asked, rows must be a bargain."""
    bargains = not wish.whole and selection.favour is Favour.balanced
    if wish.limit is None and not wish.feed and selection.favour is not Favour.ram:
        return _bargain(program, selection, wish, program) if bargains else program
    search = RowSearch(program, selection, workspace_io=wish.workspace_io, feed=wish.feed)
    if wish.feed:
        require_feedable(search)
    if selection.favour is Favour.ram:
        smaller = _applied(search, least(search, SLOWER), wish)
        arena = _arena(smaller, selection, wish)
        if not wish.feed and arena >= (whole := _arena(program, selection, wish)):
            smaller, arena = program, whole
        if wish.limit is None or wish.apart + arena <= wish.limit:
            return smaller
    if wish.limit is not None:
        return _within(search, wish, wish.limit)
    fed = _applied(search, search.within(ANY) or search.whole, wish)
    return _bargain(program, selection, wish, fed) if bargains else fed


def _arena(program: Program, selection: Selection, wish: RamWish, effort: float = 1.0) -> int:
    return place_with_less_scratch(program, selection.target, workspace_io=wish.workspace_io, effort=effort)[1].arena


def _applied(search: RowSearch, cut: ChainPlan, wish: RamWish) -> Program:
    return apply(search.program, cut.groups, search.parts, feed=wish.feed)


def _within(search: RowSearch, wish: RamWish, ram: int) -> Program:
    """The fastest program found whose arena fits; ModelError with the least RAM reached if none does."""
    limit = ram - wish.apart
    for _ in range(TRIES):
        cut = search.within(limit)
        if cut is None:
            break
        program = _applied(search, cut, wish)
        over = wish.apart + place(program, workspace_io=wish.workspace_io).arena - ram
        if over <= 0:
            return program
        limit = min(limit, cut.bytes) - over
    smallest = _applied(search, least(search, float("inf")), wish)
    reached = wish.apart + place(smallest, workspace_io=wish.workspace_io).arena
    if reached <= ram:
        return smallest
    raise ModelError(
        f"--ram {ram:,}: {search.program.model.name} takes {reached:,} bytes at least, inputs and outputs included; "
        f"give it as many, or a model with smaller tensors"
    )


# Rows that nobody asked for: a bargain, which saves much RAM for next to no time and flash.
#
# The limit of RAM falls step by step. Among the cuts that are cheap enough, the one counts that gives most: a per cent
# of the arena counts as much as an eighteenth of a per cent of time.

SAVED: Final = 0.25  # The least share of the arena that rows must save.
TIME: Final = 0.02  # The most estimated time of the CPU that they may cost: what is measured stays below 3 %.
FLASH: Final = 6144  # The most estimated bytes of flash; nor more than the bytes of RAM that are saved.
STEP: Final = 7 / 8  # From one limit to the next.
RATE: Final = 18.0
# Layers of a chain. Longer chains hardly ever save more at this price, and take a hundred times as long to find.
SHORT: Final = 6
TALL: Final = 1024  # Rows of a tensor in a chain.
EFFORT: Final = 0.02  # The effort of planning each arena; what is taken is planned anew.


def _bargain(program: Program, selection: Selection, wish: RamWish, fastest: Program) -> Program:
    """The cut that is worth most once its arena is planned. What is needed at once promises how much that may be, and
    costs nothing to know; so arenas are planned in the order of promises, until none promises more. ``fastest``: the
    program without it."""
    search = RowSearch(program, selection, workspace_io=wish.workspace_io, feed=wish.feed, longest=SHORT, tallest=TALL)
    start = search.within(ANY) if wish.feed else search.whole
    if start is None:
        return fastest
    cuts = [(_worth(start.bytes, cut.bytes, slower), cut, slower) for cut, slower in _cheap(search, start)]
    cuts = sorted((cut for cut in cuts if cut[0] > 0), key=lambda cut: -cut[0])
    if not cuts:
        return fastest
    arena, flash = _finished(fastest, selection, wish)
    arena = min(arena, start.bytes)  # A quick plan may waste what the final one does not.
    best, most = fastest, 0.0
    for promise, cut, slower in cuts:
        if promise <= most:
            break
        smaller = _applied(search, cut, wish)
        needs, takes = _finished(smaller, selection, wish)
        worth = _worth(arena, needs, slower)
        if worth > most and needs <= (1 - SAVED) * arena and takes - flash <= min(FLASH, arena - needs):
            best, most = smaller, worth
    return best


def _worth(before: int, after: int, slower: float) -> float:
    return math.log(max(1, before) / max(1, after)) - RATE * slower


def _finished(program: Program, selection: Selection, wish: RamWish) -> tuple[int, int]:
    """The bytes of the arena, and those of the flash by estimate, after all other choices of kernels."""
    small = place_small(program, selection, workspace_io=wish.workspace_io, effort=EFFORT)
    return _arena(small, selection, wish, EFFORT), code_bytes(small, Estimated.on(selection.target).code)


def _cheap(search: RowSearch, whole: ChainPlan) -> Iterator[tuple[ChainPlan, float]]:
    """The cuts that cost little more time than ``whole``, from the most RAM to the least, each with its share of it."""
    time = sum(
        cost for layer, cost in zip(search.program.layers, search.costs, strict=True) if not layer.on_accelerator
    )
    cut = search.within(int(whole.bytes * (1 - SAVED)))
    while cut is not None and cut.bytes > 0 and cut.cost - whole.cost <= TIME * time:
        yield cut, (cut.cost - whole.cost) / max(1.0, time)
        cut = search.within(int(cut.bytes * STEP))
