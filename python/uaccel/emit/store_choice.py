"""The memories that constants are divided among: those that the user names, or what the board makes worth while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from uaccel.basics.favour import Favour
from uaccel.cpu_kernels import Work
from uaccel.cpu_kernels.selection import Selection
from uaccel.emit.stores import heat_of_constants, room_for
from uaccel.emit.weights import Array, ConstantPool
from uaccel.errors import UaccelError
from uaccel.lower.program import Program
from uaccel.memory import Pool, Store
from uaccel.rows.costs import Costs

PAYS: Final = 0.01
"""The part of an inference's time that copies into fast memory must save."""
CODE: Final = 1 << 10
"""Bytes of flash left for each of a model's functions, beside what is reserved in any case."""
OFTEN: Final = 2.0
"""What is read once in an inference does not earn its bytes of RAM."""
WORD: Final = 4
TOGETHER: Final = 2
"""Kernels compute about so many results with a weight that they have read."""


def given_stores(program: Program, pools: Sequence[Pool], rooms: Sequence[Store], board: str) -> tuple[Store, ...]:
    """As the user named them; without ``=BYTES`` as large as what the memory has free."""
    if not rooms:
        _require_order(pools)
        return tuple(Store(pool.name, pool.size) for pool in pools)
    known, careful = ({room.name: room for room in some} for some in (rooms, beside_code(rooms, program)))
    return tuple(_given(pool, known, careful, board) for pool in pools)


def beside_code(rooms: Sequence[Store], program: Program) -> list[Store]:
    """With less of the first flash, where code lies: how much that takes nobody knows before the linker."""
    code = CODE * sum(len(layer.functions) for layer in program.layers)
    first = next((room.name for room in rooms if not room.copied), "")
    return [replace(room, size=max(0, (room.size or 0) - code)) if room.name == first else room for room in rooms]


def _require_order(pools: Sequence[Pool]) -> None:
    for before, pool in pairwise(pools):
        if before.size is None:
            raise UaccelError(
                f"--constant-pool {pool.name} comes after {before.name}, which has no size and takes the rest; "
                f"write {before.name}=BYTES"
            )


def _given(pool: Pool, known: Mapping[str, Store], careful: Mapping[str, Store], board: str) -> Store:
    room = known.get(pool.name)
    if room is None:
        names = ", ".join(known)
        raise UaccelError(
            f"--constant-pool {pool.name}: board {board} has no memory of that name; wanted one of {names}"
        )
    free = room.size or 0
    if pool.size is not None and pool.size > free:
        raise UaccelError(
            f"--constant-pool {pool.name}={pool.size:,}: memory {pool.name} of board {board} has {free:,} bytes left "
            "for constants; give the pool no more"
        )
    return careful[pool.name] if pool.size is None else replace(room, size=pool.size)


def own_stores(
    program: Program, pool: ConstantPool, rooms: Sequence[Store], selection: Selection, *, saves_ram: bool
) -> tuple[Store, ...]:
    """Flash memories, where none has room for all; before them the fast memory of what it pays to copy at start. None
    where everything lies in one flash."""
    if not rooms or any(engine.has_device for engine in program.engines):
        return ()
    homes = _homes(pool.arrays, rooms, beside_code(rooms, program))
    fast = None if saves_ram or selection.favour is Favour.ram else _fast(program, pool, homes, rooms, selection)
    stores = ([fast] if fast is not None else []) + homes
    return tuple(stores) if len(stores) > 1 else ()


def _homes(arrays: Sequence[Array], rooms: Sequence[Store], careful: Sequence[Store]) -> list[Store]:
    """The first flash that has room for all, if none is faster; else all of them, the fastest first."""
    size = sum(map(room_for, arrays))
    whole = [room for room in rooms if not room.copied and size <= (room.size or 0)]
    flashes = sorted((room for room in careful if not room.copied), key=lambda flash: flash.wait_states)
    return whole[:1] if whole and whole[0].wait_states <= flashes[0].wait_states else flashes


def _fast(
    program: Program, pool: ConstantPool, homes: Sequence[Store], rooms: Sequence[Store], selection: Selection
) -> Store | None:
    """The memory on the chip that is faster than flash, where copies save enough of an inference."""
    slow = max((home.wait_states for home in homes), default=0)
    known = [room for room in rooms if room.copied and not room.spare and room.size and room.wait_states < slow]
    if not known:
        return None
    best = min(known, key=lambda room: room.wait_states)
    waits = (slow - best.wait_states) / (WORD * TOGETHER)
    best, left, saved = replace(best, least=max(OFTEN, 1 / waits)), best.size or 0, 0.0
    heat = heat_of_constants(program, pool)
    for array in sorted(pool.arrays, key=lambda array: (-heat[array.symbol], array.data.nbytes, array.symbol)):
        if heat[array.symbol] >= best.least and room_for(array) <= left:
            left -= room_for(array)
            saved += heat[array.symbol] * array.data.nbytes * waits
    return best if saved >= PAYS * _cycles(program, selection) else None


def _cycles(program: Program, selection: Selection) -> float:
    """Of an inference, by estimate."""
    costs = Costs.on(selection.target)
    layers = [layer for whole in program.layers for layer in whole.operators if not layer.is_view]
    return sum(
        costs.of(layer.kernel, Work(layer.macs, sum(value.info.elements for value in layer.outputs)))
        for layer in layers
    )
