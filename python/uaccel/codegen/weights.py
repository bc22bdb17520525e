"""Constants, and in which memory they lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.codegen.layer_text import Parameter
from uaccel.codegen.options import Names
from uaccel.errors import UaccelError
from uaccel.kernels import Work
from uaccel.kernels.choice import Selection
from uaccel.lower.program import Band, Layer, Program, StateValue
from uaccel.lower.rows.schedule import Costs
from uaccel.memory import Pool, Store
from uaccel.ops.operator import Constant
from uaccel.util.c_text import COMPACT_FROM, SUPPRESSED, array_body, as_string, is_long, storage_type, wrap_call
from uaccel.util.favour import Favour
from uaccel.util.text import round_up

# The constants of a model: one array per distinct content, apart from the code.

ALIGNMENT = 4  # Of bytes too: kernels for some CPUs load them by words.
DEVICE_ALIGNMENT = 16


@dataclass(frozen=True, eq=False)
class Array:
    """One constant array; ``users`` are the layers that read it, ``for_device`` says that an accelerator does.
    ``pool``: of constants that are divided."""

    symbol: str
    data: NDArray[Any]
    for_device: bool = False
    users: list[str] = field(default_factory=list)
    pool: str = ""

    @property
    def alignment(self) -> int:
        """Said wherever the array is declared: of one that has none, compilers assume more than another compiler or
        option gave it (16 bytes on x86-64)."""
        return DEVICE_ALIGNMENT if self.for_device else max(ALIGNMENT, self.data.itemsize)

    @property
    def place(self) -> str:
        """The macro that says where it lies."""
        if self.for_device:
            return "UACCEL_DEVICE_CONSTANT"
        return f"UACCEL_CONSTANT_POOL({self.pool})" if self.pool else "UACCEL_CONSTANT"

    @property
    def declaration(self) -> str:
        kind = storage_type(str(self.data.dtype))
        return f"UACCEL_ALIGNED({self.alignment}) const {kind} {self.symbol}[{max(1, self.data.size)}]"


class ConstantPool:
    """Names every constant of a program and finds equal ones."""

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
        key = (str(data.dtype), data.tobytes(), for_device)
        if key not in self._by_content:
            symbol = f"{self._names.prefix}_{layer.name}_{constant.role}{suffix}"
            self._by_content[key] = Array(symbol, data, for_device)
        array = self._by_content[key]
        if layer.name not in array.users:
            array.users.append(layer.name)
        return array.symbol

    def _add_first_value(self, entry: StateValue) -> str:
        """Nothing where ``memset`` says it."""
        data = np.ascontiguousarray(entry.spec.initial)
        if len(set(data.tobytes())) == 1:
            return ""
        key = (str(data.dtype), data.tobytes(), False)
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
        shape = "x".join(map(str, array.data.shape)) or "1"
        users = array.users if len(array.users) <= 4 else [*array.users[:4], f"and {len(array.users) - 4} more"]
        parts.append(f"/* {array.data.dtype} {shape}, {array.data.nbytes} bytes: {', '.join(users)} */")
        parts.append(f"{array.declaration} {array.place} ={_value(array.data, compact)};\n")
    if not arrays:
        parts.append(f"/* This model has no constants. */\ntypedef int {names.prefix}_no_weights;\n")
    return "\n".join(parts)


def _value(data: NDArray[Any], compact: bool) -> str:
    if compact and is_long(data):
        return f"\n{as_string(data)}"
    return f" {{\n{array_body(data) if data.size else '    0'}\n}}"


# Which constants lie in which of several memories: those that are read most often in the first that has room.

# What the constants of a program are divided among; none for one memory.
StoresFor = Callable[[ConstantPool], Sequence[Store]]


@dataclass(frozen=True)
class Constants:
    """Those of a program, each with the store that it lies in."""

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
    """How often each byte is read in an inference, about, by the array's symbol."""
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
    """Layers, and the functions of those that run by rows, with how often an inference calls them."""
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
                floats = argument.data.dtype.kind == "f"  # of integers a word may hold four weights
                yield pool.symbol(layer, i, j), argument.data.size if floats else argument.data.nbytes


def room_for(array: Array) -> int:
    """What it takes of a memory, whatever lies beside it."""
    return round_up(max(1, array.data.nbytes), array.alignment)


def in_stores(
    model: str, arrays: Sequence[Array], stores: Sequence[Store], heat: Mapping[str, float]
) -> tuple[Array, ...]:
    """The arrays with the names of their stores, the preferred one first; those of accelerators as they were."""
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
    """Of constants in each store, those that hold any."""
    sizes = {store.name: 0 for store in stores}
    for array in arrays:
        if array.pool:
            sizes[array.pool] += array.data.nbytes
    return {name: size for name, size in sizes.items() if size}


# The memories that constants are divided among: those that the user names, or what the board makes worth while.

PAYS: Final = 0.01  # The part of an inference's time that copies into fast memory must save.
CODE: Final = 1 << 10  # Bytes of flash left for each of a model's functions, beside what is reserved in any case.
OFTEN: Final = 2.0  # What is read once in an inference does not earn its bytes of RAM.
WORD: Final = 4
TOGETHER: Final = 2  # Kernels compute about so many results with a weight that they have read.


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


# Constants that are copied into the arena while the layer before computes: which of them, where, and the C for it.

HEADER = "uaccel_fetch.h"
PARAMETER = "constants"  # Of a layer's function: where they were copied.
PREFETCH_ALIGNMENT = 16


@dataclass(frozen=True)
class PrefetchPlan:
    """``offsets``: of each array, by its symbol, in the block that its layer has in the arena, by the layer's name.
    ``sizes``: bytes of each array."""

    offsets: Mapping[str, Mapping[str, int]]
    sizes: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.offsets)

    def block(self, layer: Layer) -> int:
        """Bytes of a layer's block."""
        return max((offset + self.sizes[symbol] for symbol, offset in self._of(layer).items()), default=0)

    def blocks(self, program: Program) -> dict[int, int]:
        """By the layer's index."""
        return {layer.index: self.block(layer) for layer in program.layers if self._of(layer)}

    def parameters(self, layer: Layer) -> list[Parameter]:
        """What its function takes besides."""
        return [Parameter("const void *", PARAMETER)] if self._of(layer) else []

    def value(self, layer: Layer, symbol: str, dtype: str) -> str:
        """How its function names a constant."""
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
    """The constants in pools whose layers are to have copies, as far as the block of a layer may be so large."""
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
    """A driver hands on addresses that its device knows, and rows go through a layer's functions many times."""
    return not layer.is_view and not layer.on_accelerator and layer.streaming is None


def _symbols(layer: Layer, pool: ConstantPool) -> Iterator[str]:
    for i, call in enumerate(layer.kernel.calls):
        for j, argument in enumerate(call.arguments):
            if isinstance(argument, Constant) and argument.data.size:
                yield pool.symbol(layer, i, j)


def _moved(address: str, offset: int) -> str:
    return f"(uint8_t *){address} + {offset}" if offset else address
