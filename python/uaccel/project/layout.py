"""Which memory of a board holds what of a model: decided here, so that what does not fit is said in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from uaccel.board import Board, Memory
from uaccel.errors import BoardError, UaccelError

INTERRUPT_STACK: Final = 1536
GUARD: Final = 128
"""Bytes below the stack that nobody may touch: a region that the MPU of a Cortex-M and the PMP of RISC-V can have."""
STATIC_RESERVE: Final = 6 << 10
"""For variables beside the model's own: the session server's, the console's ring, the C library's."""
CODE_RESERVE: Final = 12 << 10
"""The least that code takes, the session server's and the model's; how much it is the linker will say."""


@dataclass(frozen=True)
class Needs:
    """What a model takes, in bytes."""

    model: str
    arena: int
    io: int
    weights: int


@dataclass(frozen=True)
class Layout:
    """``data`` holds stacks and variables too."""

    code: Memory
    weights: Memory
    data: Memory
    arena: Memory
    io: Memory
    shared: Memory | None
    """What an accelerator reaches, where there is such a memory."""


def needs_of(files: Mapping[str, bytes]) -> Needs:
    """From an archive's metadata."""
    try:
        modules: dict[str, Any] = json.loads(files["metadata.json"])["modules"]
        ((name, module),) = modules.items()
        main = module["memory"]["functions"]["main"][0]
        arena, io, weights = (main[f"{what}_size_bytes"] for what in ("workspace", "io", "constants"))
        return Needs(str(name), int(arena), int(io), int(weights))
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise UaccelError(
            f"metadata.json of the archive does not say what memory the model takes ({error!r}); "
            "make the archive anew with 'uaccel compile'"
        ) from error


def lay_out(board: Board, needs: Needs) -> Layout:
    """The first memory of the file that has room, of the kinds that suit; :class:`BoardError` where none has."""
    flashes = [memory for memory in board.memories if memory.kind == "flash"]
    fast = [memory for memory in board.memories if memory.kind in ("ram", "tcm")]
    external = [memory for memory in board.memories if memory.kind == "external"]
    data = fast[0]
    free = {memory.name: memory.length for memory in board.memories}
    free[flashes[0].name] -= CODE_RESERVE
    free[data.name] -= board.stack + INTERRUPT_STACK + GUARD + STATIC_RESERVE

    def take(what: str, size: int, memories: list[Memory]) -> Memory:
        for memory in memories:
            if size <= free[memory.name]:
                free[memory.name] -= size
                return memory
        raise BoardError(_too_small(board, needs, what, size, {memory.name: free[memory.name] for memory in memories}))

    return Layout(
        code=flashes[0],
        weights=take("constants", needs.weights, flashes),
        data=data,
        arena=take("arena", needs.arena, [*fast, *external]),
        io=take("inputs and outputs", needs.io, [*fast, *external]),
        shared=next((memory for memory in board.memories if memory.accelerator), None),
    )


def _too_small(board: Board, needs: Needs, what: str, size: int, free: Mapping[str, int]) -> str:
    rest = ", ".join(f"{name} {max(0, bytes_left):,}" for name, bytes_left in free.items())
    remedy = "flash" if what == "constants" else "ram or external"
    verb = "is" if what == "arena" else "are"
    return (
        f"model {needs.model} does not fit on board {board.name}: its {what} {verb} {size:,} bytes, "
        f"free for that: {rest}; "
        f"choose a board with more, or describe a further [[memory]] of kind {remedy} in {board.file}"
    )


def regions(layout: Layout) -> Iterator[tuple[str, Memory]]:
    """What lies where, for comments."""
    yield "code", layout.code
    yield "constants", layout.weights
    yield "stacks and variables", layout.data
    yield "arena", layout.arena
    yield "inputs and outputs", layout.io
    if layout.shared is not None:
        yield "what an accelerator reaches", layout.shared
