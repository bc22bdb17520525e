"""What a user wishes about RAM, as a program: which of its layers run by rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from uaccel.basics.favour import Favour
from uaccel.cpu_kernels.selection import Selection
from uaccel.errors import ModelError
from uaccel.lower.lean import place_lean
from uaccel.lower.placement import place
from uaccel.lower.program import Program
from uaccel.rows.apply import apply
from uaccel.rows.search import ANY, Cut, Search, least

SLOWER: Final = 1.13
"""How much more estimated time ``--favour ram`` may cost: what is measured stays below 15 %."""
TRIES: Final = 6
"""Plans of memory are a little larger than what is needed at once; the limit is lowered by that."""


@dataclass(frozen=True)
class RamWish:
    """``limit``: bytes that inputs, outputs, state and the arena may take; None where none was said. ``apart``: what of
    these is not in the arena. ``feed``: the caller hands over an input's rows."""

    limit: int | None = None
    apart: int = 0
    feed: bool = False
    workspace_io: bool = False


def by_rows(program: Program, selection: Selection, wish: RamWish) -> Program:
    """The program as it was where nobody wishes less RAM."""
    if wish.limit is None and not wish.feed and selection.favour is not Favour.ram:
        return program
    search = Search(program, selection, workspace_io=wish.workspace_io, feed=wish.feed)
    if wish.feed:
        require_feedable(search)
    if wish.limit is not None:
        return _within(search, wish, wish.limit)
    if selection.favour is Favour.ram:
        smaller = _applied(search, least(search, SLOWER), wish)
        gains = wish.feed or _arena(smaller, selection, wish) < _arena(program, selection, wish)
        return smaller if gains else program
    return _applied(search, search.within(ANY) or search.whole, wish)


def _arena(program: Program, selection: Selection, wish: RamWish) -> int:
    return place_lean(program, selection.target, workspace_io=wish.workspace_io)[1].arena


def _applied(search: Search, cut: Cut, wish: RamWish) -> Program:
    return apply(search.program, cut.groups, search.parts, feed=wish.feed)


def _within(search: Search, wish: RamWish, ram: int) -> Program:
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


def require_feedable(search: Search) -> None:
    """ModelError where no input can come by rows."""
    program = search.program
    if search.fed is not None and search.within(ANY) is not None:
        return
    names = [f'"{spec.name}"' for spec in program.signature.inputs]
    which = f"none of the inputs {', '.join(names)} of {program.model.name} can"
    if len(names) == 1:
        which = f"input {names[0]} of {program.model.name} cannot"
    raise ModelError(
        f"--feed: {which} come by rows, because the first layer does not read it by rows or others read it as a whole; "
        "leave --feed away"
    )
