"""Collects a model's constants, prints them as C arrays, and decides in which memory each one lies.

Equal constants become one array. Where a board has several memories, the arrays are divided among constant pools,
those that are read most often first. Constants in slow memory may be prefetched: copied into the arena while the
layer before theirs computes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.board import Memory
from uaccel.codegen.layer_text import Parameter
from uaccel.codegen.options import Names
from uaccel.errors import UaccelError
from uaccel.kernels import Work
from uaccel.kernels.choice import Selection, Shares
from uaccel.kernels.cpu_costs import Costs
from uaccel.kernels.waits import OFTEN, saved_a_byte
from uaccel.lower.program import Band, Layer, Program, StateValue
from uaccel.memory import Pool, Store
from uaccel.ops.kernel import Constant
from uaccel.util.c_text import (
    COMPACT_FROM,
    SUPPRESSED,
    array_body,
    as_string,
    is_long,
    storage_type,
    wrap_call,
    wrapped_comment,
)
from uaccel.util.favour import Favour
from uaccel.util.text import round_up

# Constant arrays: one for each distinct content, in a C file of their own.

ALIGNMENT = 4  # Bytes at least, for bytes too: kernels for some CPUs load them by words.
DEVICE_ALIGNMENT = 16  # Bytes, for arrays that an accelerator reads.


@dataclass(eq=False)
class Array:
    """Describes a constant array. ``users`` are the layers that read it, ``for_device`` says that an accelerator does.
    ``needed``: the alignment that its device wants.
    ``pool`` names its memory where constants are divided among several, and is empty otherwise."""

    symbol: str
    data: NDArray[Any]
    for_device: bool = False
    needed: int = 1
    users: list[str] = field(default_factory=list)
    pool: str = ""

    @property
    def alignment(self) -> int:
        """Bytes; stated at every declaration. Without it a compiler may assume more (16 bytes on x86-64) than the
        compiler or the options of the file with the definition gave."""
        return max(DEVICE_ALIGNMENT, self.needed) if self.for_device else max(ALIGNMENT, self.data.itemsize)

    @property
    def place(self) -> str:
        """The macro that places it in a memory."""
        if self.for_device:
            return "UACCEL_DEVICE_CONSTANT"
        return f"UACCEL_CONSTANT_POOL({self.pool})" if self.pool else "UACCEL_CONSTANT"

    @property
    def declaration(self) -> str:
        kind = storage_type(str(self.data.dtype))
        return f"UACCEL_ALIGNED({self.alignment}) const {kind} {self.symbol}[{max(1, self.data.size)}]"


class ConstantPool:
    """Names every constant of a program and merges equal ones.

    Arrays are keyed by type, digest and whether a device reads them. The first user names the array; later users join
    it. What a device reads stays apart: it has another alignment and another place.
    """

    def __init__(self, program: Program, names: Names) -> None:
        self._names = names
        self._program = program
        self._by_content: dict[tuple[str, bytes, bool], Array] = {}
        self._symbols: dict[tuple[str, int, int], str] = {}
        for layer in program.layers:
            parts = layer.streaming.functions if layer.streaming else ()
            inner = (function for each in layer.inner for function in each.functions)
            for variant in (*layer.forms, *parts, *inner):
                self._add_layer(variant)
        self._first_values = {entry.before.name: self._add_first_value(entry) for entry in program.state}

    def _add_layer(self, layer: Layer) -> None:
        for i, call in enumerate(layer.kernel.calls):
            for j, argument in enumerate(call.arguments):
                if isinstance(argument, Constant):
                    self._symbols[layer.name, i, j] = self._add(layer, argument, f"_{i}" if i else "")

    def _add(self, layer: Layer, constant: Constant, suffix: str) -> str:
        data = np.ascontiguousarray(constant.data)
        for_device = layer.on_accelerator and self._program.engine(layer).has_device
        key = (str(data.dtype), _digest(data), for_device)
        if key not in self._by_content:
            symbol = f"{self._names.prefix}_{layer.name}_{constant.role}{suffix}"
            self._by_content[key] = Array(symbol, data, for_device)
        array = self._by_content[key]
        array.needed = max(array.needed, self._program.device_alignment(layer))
        if layer.name not in array.users:
            array.users.append(layer.name)
        return array.symbol

    def _add_first_value(self, entry: StateValue) -> str:
        """Adds the array of a state's first value; none where all its bytes are equal, since ``memset`` sets those."""
        data = np.ascontiguousarray(entry.spec.initial)
        if len(set(data.tobytes())) == 1:
            return ""
        key = (str(data.dtype), _digest(data), False)
        if key not in self._by_content:
            self._by_content[key] = Array(f"{self._names.prefix}_first_{entry.before.name}", data)
        array = self._by_content[key]
        array.users.append(f"the state {entry.before.name}")
        return array.symbol

    def first_value(self, entry: StateValue) -> str:
        """The constant that a part of the state begins with; empty where its bytes are all the same."""
        return self._first_values[entry.before.name]

    def symbol(self, layer: Layer, call: int, argument: int) -> str:
        return self._symbols[layer.name, call, argument]

    @property
    def arrays(self) -> list[Array]:
        return list(self._by_content.values())


def _digest(data: NDArray[Any]) -> bytes:
    """A digest of the elements, in place of a copy of them."""
    return hashlib.sha256(data.reshape(-1).view(np.uint8).data).digest()


def weights_header(names: Names, arrays: Sequence[Array], provenance: str) -> str:
    guard = f"{names.macro}_WEIGHTS_H"
    lines = [provenance, f"#ifndef {guard}", f"#define {guard}", "", '#include "uaccel_kernel.h"', ""]
    lines += [f"extern {array.declaration};" for array in arrays]
    return "\n".join([*lines, "", "#endif", ""])


def weights_source(names: Names, arrays: Sequence[Array], provenance: str) -> str:
    parts = [provenance, f'#include "{names.prefix}_weights.h"', ""]
    compact = sum(array.data.nbytes for array in arrays) >= COMPACT_FROM
    if compact:
        parts.append(SUPPRESSED)
    if not all(np.isfinite(array.data).all() for array in arrays):
        parts.insert(1, "#include <math.h>\n")
    for array in arrays:
        parts.append(about(array))
        parts.append(f"{array.declaration} {array.place} ={_value(array.data, compact)};\n")
    if not arrays:
        parts.append(f"/* This model has no constants. */\ntypedef int {names.prefix}_no_weights;\n")
    return "\n".join(parts)


def about(array: Array) -> str:
    """The comment on an array: what it holds, and who reads it."""
    shape = "x".join(map(str, array.data.shape)) or "1"
    users = array.users if len(array.users) <= 4 else [*array.users[:4], f"and {len(array.users) - 4} more"]
    return wrapped_comment([f"{array.data.dtype} {shape}, {array.data.nbytes} bytes: {', '.join(users)}"], 4)


def _value(data: NDArray[Any], compact: bool) -> str:
    if compact and is_long(data):
        return f"\n{as_string(data)}"
    return f" {{\n{array_body(data) if data.size else '    0'}\n}}"


# Constant pools: the constants that are read most often go to the first memory that has room.

# Gives the memories that a program's constants are divided among; none if all lie in one.
StoresFor = Callable[[ConstantPool], Sequence[Store]]


@dataclass(frozen=True)
class Constants:
    """Holds the constants of a program, each with the memory (store) that it lies in."""

    pool: ConstantPool
    arrays: tuple[Array, ...]
    stores: tuple[Store, ...] = ()


def constants_of(program: Program, names: Names, stores_for: StoresFor = lambda _pool: ()) -> Constants:
    pool = ConstantPool(program, names)
    stores, arrays = tuple(stores_for(pool)), tuple(pool.arrays)
    if stores:
        arrays = in_stores(program.name, arrays, stores, heat_of_constants(program, pool))
    return Constants(pool, arrays, stores)


def heat_of_constants(program: Program, pool: ConstantPool) -> dict[str, float]:
    """Estimates how often an inference reads each byte of an array; gives it by the array's symbol.

    A layer of N multiply-accumulates on weights of W elements reads each weight N / W times. Its largest constant is
    taken for the weights. The others (biases, multipliers) are read once for each element that the layer makes, shared
    among their own elements. Nothing is read less than once a call.
    """
    heat: dict[str, float] = dict.fromkeys((array.symbol for array in pool.arrays), 0.0)
    for layer, times in _executed(program):
        constants = list(_constants(layer, pool))
        most = max((elements for _, elements in constants), default=0)
        made = sum(value.info.elements for value in layer.outputs)
        for symbol, elements in constants:
            work = layer.macs if elements == most and layer.macs else made
            heat[symbol] += times * max(1.0, work / max(1, elements))
    return heat


def _executed(program: Program) -> Iterator[tuple[Layer, int]]:
    """Yields each C function's layer and how often an inference calls it; a layer by rows gives its inner functions."""
    for layer in program.layers:
        yield from ((function, 1) for each in layer.inner for function in each.functions)
        if layer.streaming is None:
            yield layer, 1
            continue
        steps = layer.streaming.steps
        calls = Counter(
            action.function for step in layer.streaming.order for action in steps[step] if isinstance(action, Band)
        )
        yield from ((layer.streaming.functions[function], times) for function, times in calls.items())


def _constants(layer: Layer, pool: ConstantPool) -> Iterator[tuple[str, int]]:
    for i, call in enumerate(layer.kernel.calls):
        for j, argument in enumerate(call.arguments):
            if isinstance(argument, Constant):
                floats = argument.data.dtype.kind == "f"  # integers count bytes: packed words hold several weights
                yield pool.symbol(layer, i, j), argument.data.size if floats else argument.data.nbytes


def where_constants_lie(program: Program, arrays: Sequence[Array], memories: Sequence[Memory]) -> dict[str, Shares]:
    """Tells by operator's layer which part of the bytes of its constants lies in which memory."""
    home = next((memory.name for memory in memories if memory.kind == "flash"), "")
    rows = {f"{one.name}_rows": one.name for layer in program.layers if layer.streaming for one in layer.operators}
    found: dict[str, Counter[str]] = {}
    for array in arrays:
        for user in dict.fromkeys(
            next((rows[one] for one in rows if user.startswith(one)), user) for user in array.users
        ):
            found.setdefault(user, Counter())[array.pool or home] += array.data.nbytes
    return {user: {name: size / sizes.total() for name, size in sizes.items()} for user, sizes in found.items()}


def room_for(array: Array) -> int:
    """Bytes that an array takes of a memory, whatever lies beside it: rounded up to its own alignment."""
    return round_up(max(1, array.data.nbytes), array.alignment)


def in_stores(
    model: str, arrays: Sequence[Array], stores: Sequence[Store], heat: Mapping[str, float]
) -> tuple[Array, ...]:
    """Divides the arrays among stores, of which the preferred comes first; arrays of accelerators stay as they are.

    Greedy by heat: reads a byte are what a byte of fast memory saves, so the hottest array chooses first. At equal heat
    the smaller one does, then the name decides, so that the same model always gives the same result. An array that does
    not fit goes on to the next store; smaller and colder ones may still fill the gap.
    """
    left = {store.name: store.size for store in stores}
    found: dict[str, str] = {}
    for array in sorted(arrays, key=lambda array: (-heat[array.symbol], array.data.nbytes, array.symbol)):
        if array.for_device:
            continue
        store = _first_with_room(stores, left, room_for(array), heat[array.symbol])
        if store is None:
            raise UaccelError(_too_small(model, stores, array))
        size = left[store.name]
        left[store.name] = None if size is None else size - room_for(array)
        found[array.symbol] = store.name
    return tuple(replace(array, pool=found.get(array.symbol, "")) for array in arrays)


def _first_with_room(stores: Sequence[Store], left: Mapping[str, int | None], size: int, heat: float) -> Store | None:
    for store in stores:
        room = left[store.name]
        if heat >= store.least and (room is None or size <= room):
            return store
    return None


def _too_small(model: str, stores: Sequence[Store], array: Array) -> str:
    sizes = ", ".join(f"{store.name} {store.size:,}" for store in stores)
    user = array.users[0] if array.users else "none"
    return (
        f"the constant pools of {model} are too small ({sizes} bytes): no room is left for {array.symbol}, "
        f"{array.data.nbytes:,} bytes, of {user}; make them larger, or add another pool"
    )


def bytes_of(arrays: Sequence[Array], stores: Sequence[Store]) -> dict[str, int]:
    """Bytes of constants in each store that holds any."""
    sizes = {store.name: 0 for store in stores}
    for array in arrays:
        if array.pool:
            sizes[array.pool] += array.data.nbytes
    return {name: size for name, size in sizes.items() if size}


# Choice of the constant pools: those that the user names, or those that are worth while on the board.

PAYS: Final = 0.01  # The part of an inference's time that copies into fast memory must save.
CODE: Final = 1 << 10  # Bytes of flash kept free for each of a model's functions, beside what is reserved in any case.


def given_stores(program: Program, pools: Sequence[Pool], rooms: Sequence[Store], board: str) -> tuple[Store, ...]:
    """The pools that the user named; one without ``=BYTES`` gets what its memory has free."""
    if not rooms:
        _require_order(pools)
        return tuple(Store(pool.name, pool.size) for pool in pools)
    known, careful = ({room.name: room for room in some} for some in (rooms, beside_code(rooms, program)))
    return tuple(_given(pool, known, careful, board) for pool in pools)


def beside_code(rooms: Sequence[Store], program: Program) -> list[Store]:
    """The rooms with less of the first flash, where the code lies: only the linker knows how much that takes."""
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
    """Chooses the stores if the user names none: flash, and before it fast RAM that start-up fills where that pays.

    Gives nothing where all constants lie in one flash, or where an accelerator with a device reads constants itself.
    """
    if not rooms or any(engine.has_device for engine in program.engines):
        return ()
    homes = _homes(pool.arrays, rooms, beside_code(rooms, program))
    fast = None if saves_ram or selection.favour is Favour.ram else _fast(program, pool, homes, rooms, selection)
    stores = ([fast] if fast is not None else []) + homes
    return tuple(stores) if len(stores) > 1 else ()


def _homes(arrays: Sequence[Array], rooms: Sequence[Store], careful: Sequence[Store]) -> list[Store]:
    """The first flash that has room for all constants, if no other is faster; else every flash, the fastest first."""
    size = sum(map(room_for, arrays))
    whole = [room for room in rooms if not room.copied and size <= (room.size or 0)]
    flashes = sorted((room for room in careful if not room.copied), key=lambda flash: flash.wait_states)
    return whole[:1] if whole and whole[0].wait_states <= flashes[0].wait_states else flashes


def _fast(
    program: Program, pool: ConstantPool, homes: Sequence[Store], rooms: Sequence[Store], selection: Selection
) -> Store | None:
    """The memory on the chip that is faster than flash, where copies save enough of an inference.

    ``waits`` are the cycles that one read of one byte saves. A byte of RAM must be read ``1 / waits`` times to save one
    cycle an inference; colder arrays stay in flash. The loop then fills the memory as ``in_stores`` does, and adds up
    what that saves.
    """
    slow = max((home.wait_states for home in homes), default=0)
    known = [room for room in rooms if room.copied and not room.spare and room.size and room.wait_states < slow]
    if not known:
        return None
    best = min(known, key=lambda room: room.wait_states)
    waits = saved_a_byte(slow - best.wait_states)
    best, left, saved = replace(best, least=max(OFTEN, 1 / waits)), best.size or 0, 0.0
    heat = heat_of_constants(program, pool)
    for array in sorted(pool.arrays, key=lambda array: (-heat[array.symbol], array.data.nbytes, array.symbol)):
        if heat[array.symbol] >= best.least and room_for(array) <= left:
            left -= room_for(array)
            saved += heat[array.symbol] * array.data.nbytes * waits
    return best if saved >= PAYS * _cycles(program, selection) else None


def _cycles(program: Program, selection: Selection) -> float:
    """Estimates the cycles of one inference."""
    costs = Costs.on(selection.target)
    layers = [layer for whole in program.layers for layer in whole.operators if not layer.is_view]
    return sum(
        costs.of(layer.kernel, Work(layer.macs, sum(value.info.elements for value in layer.outputs)))
        for layer in layers
    )


# Prefetch: constants that are copied into the arena while the layer before computes; which, where, and the C for it.

HEADER = "uaccel_fetch.h"
PARAMETER = "constants"  # The parameter by which a layer's function finds the copies.
PREFETCH_ALIGNMENT = 16  # Bytes, as ``uaccel_fetch`` promises a DMA channel.


@dataclass(frozen=True)
class PrefetchPlan:
    """States which constants are copied ahead, and where to. Each layer with copies has one block in the arena.

    ``offsets`` gives for a layer's name the offset of each array in that block, by the array's symbol. ``sizes`` has
    the bytes of each array.
    """

    offsets: Mapping[str, Mapping[str, int]]
    sizes: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def block(self, layer: Layer) -> int:
        """Bytes of a layer's block."""
        return max((offset + self.sizes[symbol] for symbol, offset in self._of(layer).items()), default=0)

    def blocks(self, program: Program) -> dict[int, int]:
        """Bytes of each block, by the layer's index, for the memory planner."""
        return {layer.index: self.block(layer) for layer in program.layers if self._of(layer)}

    def parameters(self, layer: Layer) -> list[Parameter]:
        """The parameter that the layer's function has in addition, if it has copies."""
        return [Parameter("const void *", PARAMETER)] if self._of(layer) else []

    def value(self, layer: Layer, symbol: str, dtype: str) -> str:
        """The C expression for a constant in the layer's function: the array itself, or its copy."""
        offset = self._of(layer).get(symbol)
        if offset is None:
            return symbol
        return f"(const {storage_type(dtype)} *)(const void *)((const uint8_t *){PARAMETER} + {offset})"

    def copies(self, layer: Layer, address: str) -> list[str]:
        """The calls that begin its copies."""
        return [
            wrap_call("    uaccel_fetch", [_moved(address, offset), symbol, str(self.sizes[symbol])]) + ";"
            for symbol, offset in self._of(layer).items()
        ]

    def _of(self, layer: Layer) -> Mapping[str, int]:
        return self.offsets.get(layer.name, {})


NOTHING = PrefetchPlan({}, {})


def ahead_of(program: Program, constants: Constants, pools: Sequence[Pool]) -> PrefetchPlan:
    """Plans the prefetch of constants in pools with ``:fetch``.

    A layer's arrays enter its block in the order in which its calls read them. One that would make the block larger
    than its pool allows is left out and read where it lies; a smaller one after it may still fit. The planner of the
    arena keeps the block alive from the layer before, during which it is filled, to the layer itself.
    """
    room = {each.name: each.fetch for each in pools if each.fetch is not None}
    _require_slow(constants, room)
    by_symbol = {array.symbol: array for array in constants.arrays if array.pool in room}
    offsets = {}
    for layer in filter(_reads_copies, program.layers):
        inside, end = {}, 0
        for symbol in dict.fromkeys(_symbols(layer, constants.pool)):
            if symbol in by_symbol and end + by_symbol[symbol].data.nbytes <= room[by_symbol[symbol].pool]:
                inside[symbol] = end
                end = round_up(end + by_symbol[symbol].data.nbytes, PREFETCH_ALIGNMENT)
        if inside:
            offsets[layer.name] = inside
    return PrefetchPlan(offsets, {symbol: array.data.nbytes for symbol, array in by_symbol.items()})


def _require_slow(constants: Constants, room: Mapping[str, int]) -> None:
    for store in constants.stores:
        if store.name in room and store.copied:
            raise UaccelError(
                f"--constant-pool {store.name}:fetch: {store.name} is RAM, where start-up puts its constants; leave "
                "':fetch' away, or name a flash memory"
            )


def _reads_copies(layer: Layer) -> bool:
    """Whether a layer can read copies. Views read nothing; a driver hands its device the addresses of the constants
    themselves; the functions of a layer by rows run many times and have no parameter for copies."""
    return not layer.is_view and not layer.on_accelerator and layer.streaming is None


def _symbols(layer: Layer, pool: ConstantPool) -> Iterator[str]:
    for i, call in enumerate(layer.kernel.calls):
        for j, argument in enumerate(call.arguments):
            if isinstance(argument, Constant) and argument.data.size:
                yield pool.symbol(layer, i, j)


def _moved(address: str, offset: int) -> str:
    return f"(uint8_t *){address} + {offset}" if offset else address
