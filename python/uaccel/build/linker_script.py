"""Assigns the parts of a model to the memories of a board, and writes the linker script that says so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from uaccel.board import Board, Memory
from uaccel.board.types import ON_CHIP
from uaccel.build.archive_reader import runs_models
from uaccel.errors import BoardError, UaccelError
from uaccel.memory import Pool, Rooms, Store
from uaccel.util.files import parse_json

# The layout: which memory of a board holds what of a model. It is decided here and not by the linker, so that an error
# can say in words what does not fit.
#
# Sizes of code and variables are not known before linking, so reserves stand for them. The linker has the last word: it
# may still refuse a model that passes here.

INTERRUPT_STACK: Final = 1536  # Bytes of the stack that interrupts have for themselves.
# Bytes below the stack that nobody may touch. A power of two, and aligned to itself, since regions of the MPU of a
# Cortex-M and of the PMP of RISC-V must be.
GUARD: Final = 128
_IN_C: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# Bytes for variables beside the model's own: the session server's, the console's ring, the C library's.
STATIC_RESERVE: Final = 6 << 10
# The least bytes that code takes, the session server's and the model's; how many it is the linker will say.
CODE_RESERVE: Final = 12 << 10
WINDOW: Final = 256  # Bytes for the mailbox through which firmware under QEMU reaches its devices, and for alignment.
WORKSPACE_ALIGNMENT: Final = 16  # Bytes; what the linker script aligns arenas and pools to.
GAP: Final = 64  # Bytes that alignment may take between parts of a memory.
_REMEDIES: Final = {
    "constants": "of kind flash",
    "arena with inputs and outputs": "with 'accelerator = true'",
    "constants for accelerators": "with 'accelerator = true'",
}


@dataclass(frozen=True)
class MemoryNeeds:
    """States what a model takes, in bytes. ``weights`` are the constants that the CPU reads, alone or not.

    With ``accelerators`` the arena, inputs, outputs and ``device_constants`` lie where those reach them.
    """

    model: str
    arena: int
    io: int
    weights: int
    accelerators: tuple[str, ...] = ()
    device_constants: int = 0
    pools: tuple[tuple[str, int], ...] = ()  # Name and bytes of each part of a divided arena.
    constants: tuple[tuple[str, int], ...] = ()  # Name and bytes of each constant pool; not counted in ``weights``.


@dataclass(frozen=True)
class StoredConstants:
    """Places a pool of constants: where it is read, and where it lies until start-up copies it (None: no copy)."""

    pool: str
    memory: Memory
    load: Memory | None = None


@dataclass(frozen=True)
class Layout:
    """Names the memory for each part of a model and its firmware; ``data`` holds stacks and variables."""

    code: Memory
    weights: Memory
    data: Memory
    arena: Memory
    io: Memory
    shared: Memory | None  # The memory that an accelerator reaches, where there is one.
    device_constants: Memory | None = None  # Where the constants lie that accelerators read; None without accelerators.
    # Where these lie until the start-up code copies them; None where they are read in place.
    device_load: Memory | None = None
    pools: tuple[tuple[str, Memory], ...] = ()  # Where each part of a divided arena lies.
    constants: tuple[StoredConstants, ...] = ()


def needs_of(files: Mapping[str, bytes]) -> MemoryNeeds:
    """The needs of a model, from its archive's metadata; names are checked, since they go into C and the script."""
    try:
        document: dict[str, Any] = parse_json(files["metadata.json"])
        modules: dict[str, Any] = document["modules"]
        ((name, module),) = modules.items()
        main = module["memory"]["functions"]["main"][0]
        arena, io, weights = (main[f"{what}_size_bytes"] for what in ("workspace", "io", "constants"))
        own = document.get("uaccel", {})
        device = own.get("device_constants", 0)
        accelerators = tuple(str(entry["name"]) for entry in own.get("accelerators", []) if entry.get("device", True))
        pools, constants = (_parts(document, key) for key in ("pools", "constant_pools"))
        rest = int(weights) - int(device) - sum(size for _, size in constants)
        needs = MemoryNeeds(str(name), int(arena), int(io), rest, accelerators, int(device), pools, constants)
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise UaccelError(
            f"metadata.json of the archive does not say what memory the model takes ({error!r}); "
            "make the archive anew with 'uaccel compile'"
        ) from error
    called = [("an accelerator", name) for name in accelerators]
    called += [("a pool", name) for name, _ in (*pools, *constants)]
    for what, word in (("the model", needs.model), *called):
        if not _IN_C.fullmatch(word):
            raise UaccelError(
                f"metadata.json of the archive calls {what} {word!r}; wanted letters, digits and underscores: "
                "make the archive anew with 'uaccel compile'"
            )
    return needs


def _parts(document: dict[str, Any], key: str) -> tuple[tuple[str, int], ...]:
    return tuple((str(pool["name"]), int(pool["bytes"])) for pool in document.get("uaccel", {}).get(key) or [])


class _Room:
    """Counts what is left of each memory while parts are placed."""

    def __init__(self, board: Board, needs: MemoryNeeds) -> None:
        self._board = board
        self._needs = needs
        self._free = {memory.name: memory.length - _before(board, memory) for memory in board.memories}

    def reserve(self, memory: Memory, size: int) -> None:
        self._free[memory.name] -= size

    def free(self, memory: Memory) -> int:
        return max(0, self._free[memory.name])

    def has(self, size: int, memory: Memory) -> bool:
        return size <= self._free[memory.name]

    def take(self, what: str, size: int, memories: list[Memory]) -> Memory:
        """The first of them with room."""
        for memory in memories:
            if self.has(size, memory):
                self.reserve(memory, size)
                return memory
        raise BoardError(self._too_small(what, size, memories))

    def _too_small(self, what: str, size: int, memories: list[Memory]) -> str:
        left = {memory.name: max(0, self._free[memory.name]) for memory in memories}
        rest = ", ".join(f"{name} {count:,}" for name, count in left.items())
        remedy = _REMEDIES.get(what, "of kind ram or external")
        verb = "is" if what.startswith("arena") else "are"
        return (
            f"model {self._needs.model} does not fit on board {self._board.name}: its {what} {verb} {size:,} bytes, "
            f"{size - max(left.values()):,} more than any memory has left for that ({rest}); "
            f"choose a board with more, or describe a further [[memory]] {remedy} in {self._board.file}"
        )


def _before(board: Board, memory: Memory) -> int:
    """The bytes of a memory up to the last of its fixed words."""
    return max((one.end - memory.origin for one in board.fixed_in(memory)), default=0)


def lay_out(board: Board, needs: MemoryNeeds) -> Layout:
    """Give each part the first memory of the board file that suits and has room; :class:`BoardError` where none has."""
    layout, room = _laid_out(board, needs)
    return replace(layout, constants=tuple(_stored(board, needs, room, *part) for part in needs.constants))


def _laid_out(board: Board, needs: MemoryNeeds) -> tuple[Layout, _Room]:
    """The layout of all but constant pools, and the room that is left for these.

    Code goes into the first flash, stacks and variables into the first RAM, whatever the model: both are reserved
    before anything can take their room. Then constants, arena, inputs and outputs choose, in this order. Memories off
    the chip (``external``) come behind all RAM on it, wherever the file has them.
    """
    flashes = [memory for memory in board.memories if memory.kind == "flash"]
    working = [memory for kinds in (ON_CHIP, ("external",)) for memory in board.memories if memory.kind in kinds]
    data = working[0]
    room = _Room(board, needs)
    room.reserve(flashes[0], CODE_RESERVE)
    room.reserve(data, _fixed(board, data))
    weights = room.take("constants", needs.weights, flashes)
    if needs.accelerators:
        return _with_accelerators(board, needs, room, Layout(flashes[0], weights, data, data, data, None)), room
    pools = tuple(
        (name, room.take(f"arena pool {name}", size, [m for m in working if m.name == name] or working))
        for name, size in needs.pools
    )
    layout = Layout(
        code=flashes[0],
        weights=weights,
        data=data,
        pools=pools,
        arena=pools[0][1] if pools else room.take("arena", needs.arena, working),
        io=room.take("inputs and outputs", needs.io, working),
        shared=next((memory for memory in board.memories if memory.accelerator), None),
    )
    return layout, room


def _stored(board: Board, needs: MemoryNeeds, room: _Room, pool: str, size: int) -> StoredConstants:
    """Place a pool of constants in the memory of its name; one in RAM also takes as much flash, to be copied from."""
    memory = next((memory for memory in board.memories if memory.name == pool), None)
    if memory is None:
        names = ", ".join(memory.name for memory in board.memories)
        raise BoardError(
            f"model {needs.model} has constants for a memory {pool}, and board {board.name} has none of that name "
            f"({names}); compile it for this board"
        )
    if not room.has(size, memory):
        raise BoardError(
            f"model {needs.model} does not fit on board {board.name}: its constants in pool {pool} are {size:,} bytes, "
            f"{size - room.free(memory):,} more than that memory has left for that ({pool} {room.free(memory):,}); "
            "give the pool less"
        )
    room.reserve(memory, size)
    if memory.kind == "flash":
        return StoredConstants(pool, memory)
    return StoredConstants(
        pool, memory, room.take("constants", size, [one for one in board.memories if one.kind == "flash"])
    )


def constant_rooms(board: Board) -> Rooms:
    """A function that tells how much is left for constants in each memory, the flashes first.

    It lays out everything else of a model as ``lay_out`` would, without constants, and offers the rest, less ``GAP``
    for alignment. The flash from which a pool in RAM is copied is not taken off.
    """

    def rooms(arena: int, io: int, pools: Mapping[str, int], accelerators: Sequence[str]) -> tuple[Store, ...]:
        if board.cpu.arch == "native":
            return ()
        needs = MemoryNeeds("", arena, io, 0, tuple(accelerators), 0, tuple(pools.items()))
        try:
            _, room = _laid_out(board, needs)
        except BoardError:  # who makes a project says so
            return ()
        return tuple(
            Store(
                memory.name,
                max(0, room.free(memory) - GAP) & -WORKSPACE_ALIGNMENT,
                memory.kind != "flash",
                memory.kind == "external",
                memory.wait_states * 4 / memory.line,
            )
            for memory in sorted(board.memories, key=lambda memory: memory.kind != "flash")
            if _IN_C.fullmatch(memory.name)
        )

    return rooms


def workspace_memories(board: Board) -> tuple[Pool, ...]:
    """The memories that a workspace may be divided among, the fastest first, with what is free of each; none in a
    native process."""
    if board.cpu.arch == "native":
        return ()
    working = [memory for memory in board.memories if memory.kind != "flash"]
    free = {memory.name: memory.length for memory in working}
    data = next((memory for memory in working if memory.kind in ON_CHIP), working[0])
    free[data.name] = max(0, data.length - _always(board))
    ordered = sorted(working, key=lambda memory: (memory.kind == "external", memory.wait_states))
    return tuple(
        Pool(memory.name, free[memory.name] & -WORKSPACE_ALIGNMENT, memory.kind == "external")
        for memory in ordered
        if _IN_C.fullmatch(memory.name)
    )


def _always(board: Board) -> int:
    return board.stack + INTERRUPT_STACK + GUARD + STATIC_RESERVE


def _fixed(board: Board, data: Memory) -> int:
    """The bytes that stacks and variables take of the first RAM, whatever the model; an error if it is too small."""
    size = _always(board)
    if size > data.length:
        key = ("stack",) if "stack" in board.source.data else ("memory", board.memories.index(data))
        raise BoardError(
            f"{board.where(*key)}: the stack of {board.stack:,} bytes, with {size - board.stack:,} for interrupts and "
            f"the session server, is {size - data.length:,} bytes more than memory '{data.name}' has; "
            "choose a smaller 'stack', or put a larger [[memory]] of kind ram or tcm first"
        )
    return size


def _with_accelerators(board: Board, needs: MemoryNeeds, room: _Room, layout: Layout) -> Layout:
    """Complete ``layout`` for a model with accelerators: arena, inputs and outputs lie together in one memory.

    An accelerator reads its constants in a flash that it reaches, if one has room. Otherwise start-up code copies them
    to RAM, the shared one if it has room, and they take room in a flash as well.
    """
    check_devices(board, needs)
    reached = [memory for memory in board.memories if memory.accelerator]
    working = [memory for memory in reached if memory.kind != "flash"]
    shared = room.take("arena with inputs and outputs", needs.arena + needs.io + WINDOW, working)
    size = needs.device_constants
    direct = [memory for memory in reached if memory.kind == "flash" and room.has(size, memory)]
    constants = room.take("constants for accelerators", size, direct or [shared, *working])
    flashes = [memory for memory in board.memories if memory.kind == "flash"]
    load = None if direct else room.take("constants", size, flashes)
    return replace(layout, arena=shared, io=shared, shared=shared, device_constants=constants, device_load=load)


def check_devices(board: Board, needs: MemoryNeeds) -> None:
    """Refuse a board whose CPU cannot reach the accelerators' devices, or whose memories these do not reach."""
    if board.cpu.arch == "native" or not needs.accelerators:
        return
    model = f"model {needs.model} needs accelerator {needs.accelerators[0]}"
    if not any(memory.accelerator and memory.kind != "flash" for memory in board.memories):
        raise BoardError(
            f"{model}, and no accelerator reaches any memory of board {board.name}; write 'accelerator = true' to a "
            f"[[memory]] of kind ram, tcm or external in {board.file} whose bytes the accelerator reads and writes"
        )
    there = {device.name for device in board.devices}
    for name in needs.accelerators:
        if name not in there and not runs_models(board):
            raise BoardError(
                f"model {needs.model} needs accelerator {name}, and board {board.name} has none; write a [[device]] "
                f"with name = \"{name}\" and 'base', where its registers lie, to {board.file}"
            )


def regions(layout: Layout) -> Iterator[tuple[str, Memory]]:
    """The parts of a layout, each with its memory, for comments and messages."""
    yield "code", layout.code
    yield "constants", layout.weights
    yield "stacks and variables", layout.data
    yield from [(f"arena pool {name}", memory) for name, memory in layout.pools] or [("arena", layout.arena)]
    yield "inputs and outputs", layout.io
    for part in layout.constants:
        copied = "" if part.load is None else f", copied from {part.load.name} at start"
        yield f"constant pool {part.pool}{copied}", part.memory
    if layout.shared is not None:
        yield "what an accelerator reaches", layout.shared
    if layout.device_constants is not None:
        yield "constants that an accelerator reads", layout.device_constants


# The linker script of a project, from the memories of its board.


def linker_script(board: Board, needs: MemoryNeeds, layout: Layout) -> str:
    """The script for GNU ld; docs/boards.md explains its symbols."""
    places = "\n".join(f" *   {what}: {memory.name}" for what, memory in regions(layout))
    memories = "\n".join(_region(memory) for memory in board.memories)
    return _SCRIPT.format(
        board=board.name,
        file=board.file.name,
        model=needs.model,
        places=places,
        memories=memories,
        fixed=_fixed_words(board),
        code=layout.code.name,
        weights=layout.weights.name,
        data=layout.data.name,
        working=_working(layout),
        device_constants=_device_constants(layout),
        constants=_constants(layout),
        copies=_copies(layout),
        guard=GUARD,
        stack=board.stack,
        interrupt_stack=INTERRUPT_STACK,
    )


def _region(memory: Memory) -> str:
    access = "rx" if memory.kind == "flash" else "rwx"
    return f"  {memory.name} ({access}) : ORIGIN = {memory.origin:#010x}, LENGTH = {memory.length:#x}"


def _fixed_words(board: Board) -> str:
    """A section for each of the fixed words, at its address; whatever follows in that memory lies behind it."""
    text = ""
    for memory in board.memories:
        for one in board.fixed_in(memory):
            words = " ".join(f"LONG({word:#010x})" for word in one.words)
            text += f"  .uaccel_fixed_{one.address:x} {one.address:#010x} : {{ {words} }} > {memory.name}\n"
    return text


def _working(layout: Layout) -> str:
    """The sections of arena, inputs and outputs."""
    if layout.shared is not None and layout.device_constants is not None:
        return _REACHED.format(shared=layout.shared.name)
    shared = "" if layout.shared is None else _SHARED.format(shared=layout.shared.name)
    pools = "".join(_POOL.format(name=name, memory=memory.name) for name, memory in layout.pools)
    return _PLAIN.format(arena=layout.arena.name, io=layout.io.name, pools=pools) + shared


def _constants(layout: Layout) -> str:
    """The section of each constant pool."""
    loads = {part.pool: "" if part.load is None else f" AT> {part.load.name}" for part in layout.constants}
    return "".join(
        _CONSTANTS.format(name=part.pool, memory=part.memory.name, load=loads[part.pool]) for part in layout.constants
    )


def _copies(layout: Layout) -> str:
    """Rows of the table that start-up code walks: begin, end and origin of each pool that it copies."""
    return "".join(_COPY.format(name=part.pool) for part in layout.constants if part.load is not None)


def _device_constants(layout: Layout) -> str:
    if layout.device_constants is None:
        return _NO_DEVICE_CONSTANTS
    load = "" if layout.device_load is None else f" AT> {layout.device_load.name}"
    return _DEVICE_CONSTANTS.format(memory=layout.device_constants.name, load=load)


_CONSTANTS = """  .uaccel_constants_{name} :
  {{
    . = ALIGN(16);
    *(.rodata.uaccel_pool.{name})
    . = ALIGN(8);
  }} > {memory}{load}
"""
_COPY = """    LONG(ADDR(.uaccel_constants_{name}))
    LONG(ADDR(.uaccel_constants_{name}) + SIZEOF(.uaccel_constants_{name}))
    LONG(LOADADDR(.uaccel_constants_{name}))
"""

# Start-up code refers to these symbols, whether there are accelerators or not.
_NO_DEVICE_CONSTANTS = """  uaccel_device_constants_start = 0;
  uaccel_device_constants_end = 0;
  uaccel_device_constants_load = 0;
"""

_DEVICE_CONSTANTS = """  /* Read by accelerators; copied by the start-up code where they do not lie there at once. */
  .uaccel_device_constants :
  {{
    . = ALIGN(64);
    uaccel_device_constants_start = .;
    *(.rodata.uaccel_device)
    . = ALIGN(64);
    uaccel_device_constants_end = .;
  }} > {memory}{load}
  uaccel_device_constants_load = LOADADDR(.uaccel_device_constants);
"""

_PLAIN = """  /* Left as they are at start-up: their contents do not matter then. */
  .uaccel_arena (NOLOAD) : {{ . = ALIGN(16); *(.bss.uaccel_arena) }} > {arena}
{pools}  .uaccel_io (NOLOAD) : {{ . = ALIGN(16); *(.bss.uaccel_io) }} > {io}

"""
_POOL = "  .uaccel_pool_{name} (NOLOAD) : {{ . = ALIGN(16); *(.bss.uaccel_pool.{name}) }} > {memory}\n"

_REACHED = """  /* Read and written by accelerators, between the two symbols; left as they are at start-up. */
  .uaccel_shared (NOLOAD) :
  {{
    . = ALIGN(64);
    uaccel_shared_start = .;
    *(.bss.uaccel_arena .bss.uaccel_pool.*)
    . = ALIGN(64);
    *(.bss.uaccel_io)
    . = ALIGN(64);
    *(.bss.uaccel_shared)
    . = ALIGN(64);
    uaccel_shared_end = .;
    *(.bss.uaccel_window)
  }} > {shared}

"""

_SHARED = """  /* What an accelerator reads and writes by itself. */
  .uaccel_shared (NOLOAD) :
  {{
    . = ALIGN(4096);
    uaccel_shared_start = .;
    KEEP(*(.bss.uaccel_window))
    *(.bss.uaccel_shared)
    uaccel_shared_end = .;
  }} > {shared}

"""

_SCRIPT = """\
/* Board {board}, model {model}: made from {file}; make a new project instead of editing it.
{places} */
ENTRY(uaccel_reset)

MEMORY
{{
{memories}
}}

SECTIONS
{{
  /* Around the vectors, what boot ROMs want to find. */
  .uaccel_vectors : {{ KEEP(*(.uaccel_boot)) KEEP(*(.uaccel_vectors)) KEEP(*(.uaccel_image)) }} > {code}
{fixed}
  .uaccel_weights : {{ . = ALIGN(16); *(.rodata.uaccel_weights) . = ALIGN(8); }} > {weights}
{constants}
{device_constants}
  .text :
  {{
    /* What start-up copies: from where it is read to its end, and where it lies in flash. */
    . = ALIGN(4);
    uaccel_copies_start = .;
{copies}    uaccel_copies_end = .;
    uaccel_uncounted_start = .;
    *(.text.uaccel_uncounted)
    uaccel_uncounted_end = .;
    *(.text .text.*)
    . = ALIGN(8);
    *(.rodata .rodata.* .srodata .srodata.*)
    . = ALIGN(8);
  }} > {code}

  /* The stack is at the bottom, with a guard below it: what runs over it is a fault, and not another variable. */
  .uaccel_stacks (NOLOAD) :
  {{
    . = ALIGN({guard});
    uaccel_stack_guard = .;
    . += {guard};
    uaccel_stack_bottom = .;
    . += {stack};
    uaccel_stack_top = .;
    uaccel_interrupt_stack_bottom = .;
    . += {interrupt_stack};
    uaccel_interrupt_stack_top = .;
  }} > {data}

{working}  .data :
  {{
    . = ALIGN(8);
    uaccel_data_start = .;
    *(.data .data.*)
    PROVIDE(__global_pointer$ = . + 0x800);
    *(.sdata .sdata.*)
    . = ALIGN(8);
  }} > {data} AT> {code}
  uaccel_data_load = LOADADDR(.data);

  /* Thread-local variables, of the one thread that there is: the errno of some C libraries. */
  .tdata :
  {{
    uaccel_tls_start = .;
    *(.tdata .tdata.*)
    . = ALIGN(8);
    uaccel_data_end = .;
  }} > {data} AT> {code}
  .tbss (NOLOAD) : {{ *(.tbss .tbss.*) . = ALIGN(8); }} > {data}
  .uaccel_tls (NOLOAD) : {{ uaccel_bss_start = .; . += SIZEOF(.tbss); }} > {data} /* .tbss itself takes no room */

  .bss (NOLOAD) :
  {{
    . = ALIGN(8);
    *(.bss .bss.* .sbss .sbss.* COMMON)
    . = ALIGN(8);
    uaccel_bss_end = .;
  }} > {data}

  /DISCARD/ : {{ *(.ARM.exidx* .ARM.extab* .eh_frame* .init_array* .fini_array* .preinit_array*) }}
}}
"""
