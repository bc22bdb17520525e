"""Which constants lie in which of several memories: those that are read most often in the first that has room."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from uaccel.basics.numbers import round_up
from uaccel.emit.options import Names
from uaccel.emit.weights import Array, ConstantPool
from uaccel.errors import UaccelError
from uaccel.lower.program import Band, Layer, Program
from uaccel.memory import Store
from uaccel.ops.kernel import Constant

StoresFor = Callable[[ConstantPool], Sequence[Store]]
"""What the constants of a program are divided among; none for one memory."""


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
