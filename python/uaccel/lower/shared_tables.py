"""Stores once what layers read both as a table of entries and as weights, as language models do with their tokens.

The kernel of a matrix product wants rows side by side, element by element. A gather picks few entries, so it can take
the table as that kernel has it, and the product is as fast as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uaccel.lower.program import Layer, Program, check_parameters
from uaccel.model import Array
from uaccel.ops.conv_float import are_halves
from uaccel.ops.kernel import Constant, Kernel, KernelCall

LEAST: Final = 1 << 10  # Bytes of a table that are worth another kernel.
BLOCKS: Final = (2, 4, 8, 16)  # Rows that kernels have side by side.
# The product must take so many times the steps of the gather: then a gather of several instructions more an element
# costs next to nothing.
SMALL_PART: Final = 64
GATHER: Final = "uaccel_gather"
STRUCTURE: Final = "uaccel_gather_blocks"


@dataclass(frozen=True, eq=False)
class Weights:
    """Holds a constant that a layer reads for each of its products."""

    data: Array
    macs: int


def share_tables(program: Program) -> Program:
    """Lets gathers read the weights of other layers where these are their tables in another order."""
    weights = [one for layer in program.layers if not layer.is_view for one in _weights(layer)]
    return replace(program, layers=tuple(_sharing(layer, weights) for layer in program.layers))


def _weights(layer: Layer) -> Iterator[Weights]:
    """The constants of a layer that the CPU computes."""
    if layer.on_accelerator or not layer.macs:
        return
    for function in layer.functions:
        for call in function.kernel.calls:
            yield from (Weights(each.data, layer.macs) for each in call.arguments if isinstance(each, Constant))


def _sharing(layer: Layer, weights: Sequence[Weights]) -> Layer:
    calls = layer.kernel.calls
    if layer.on_accelerator or len(calls) != 1 or calls[0].struct != GATHER or calls[0].parameters["outer"] != 1:
        return layer
    (call,) = calls
    table = call.arguments[0]
    if not isinstance(table, Constant) or table.data.nbytes < LEAST:
        return layer
    found = _found(call, table.data, weights)
    if found is None:
        return layer
    kernel: Kernel = check_parameters(replace(layer.kernel, calls=(found,)))
    return replace(layer, kernel=kernel, reason=layer.reason.replace(call.function, found.function))


def _found(call: KernelCall, table: Array, weights: Sequence[Weights]) -> KernelCall | None:
    """The gather from weights that are the table in blocks; None where none are."""
    sizes = {name: value for name, value in call.parameters.items() if isinstance(value, int)}
    plain = _bits(table).reshape(sizes["entries"], -1)
    halves = _bits(table.astype(np.float16)).reshape(plain.shape) if _is_halves(table) else None
    for other in weights:
        if sizes["count"] * plain.shape[1] * SMALL_PART > other.macs:
            continue
        streamed = _streamed(call, sizes, table, other.data)
        if streamed is not None:
            return streamed
        for form, rows in (("", plain), ("_f16", halves)):
            block = 0 if rows is None else _block(rows, other.data)
            if block and rows is not None:
                return replace(
                    call,
                    function=call.function.replace(GATHER, f"{STRUCTURE}{form}"),
                    header="uaccel_layout_blocks.h",
                    struct=STRUCTURE,
                    parameters={
                        **{name: sizes[name] for name in ("entries", "count")},
                        "depth": rows.shape[1],
                        "width": rows.itemsize,
                        "block": block,
                    },
                    arguments=(Constant("data", other.data), *call.arguments[1:]),
                )
    return None


def _is_halves(table: Array) -> bool:
    return table.dtype == np.float32 and are_halves(table)


def _bits(array: Array) -> NDArray[Any]:
    """The elements as unsigned integers: numbers that compare as equal may differ in their bits."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def _block(rows: NDArray[Any], weights: Array) -> int:
    """How many rows lie side by side where the weights hold these; 0 where they do not. Rows may fill up the end."""
    if weights.itemsize != rows.itemsize:
        return 0
    entries, depth = rows.shape
    for block in (*BLOCKS, entries):
        if weights.size == -(-entries // block) * block * depth:
            blocks = _bits(weights).reshape(-1, depth, block)
            lanes = ((rows[lane::block], blocks[:, :, lane]) for lane in range(min(block, entries)))
            if all(np.array_equal(wanted, lane[: len(wanted)]) for wanted, lane in lanes):
                return block
    return 0


# Streams of Arm's products of bytes: eight rows, which may stand behind some words and before others. A stream of pairs
# may begin with a word, and sums of eight rows come before the rows.

EIGHT: Final = 8
WORD: Final = 4
PAIRS, VECTORS = "pairs", "vectors"
STARTS: Final = ((PAIRS, EIGHT * WORD), (PAIRS, (EIGHT + 1) * WORD), (VECTORS, 0))  # Bytes before the first rows.
FILLED: Final = {PAIRS: 4, VECTORS: 16}  # Elements, to a multiple of which rows are filled up.


def _streamed(call: KernelCall, sizes: dict[str, int], table: Array, stream: Array) -> KernelCall | None:
    """The gather from a stream that holds the table; None where it does not."""
    if table.dtype != np.int8 or stream.dtype != np.int32:
        return None
    rows = table.reshape(sizes["entries"], -1)
    given, (entries, depth) = np.ascontiguousarray(stream).reshape(-1).view(np.uint8), rows.shape
    blocks = -(-entries // EIGHT)
    for form, first in STARTS:
        before = first % (EIGHT * WORD)  # what comes once alone
        stride = (given.size - before) // blocks
        taken = -(-depth // FILLED[form]) * FILLED[form] * EIGHT
        if (given.size - before) % blocks or stride < taken + first - before:
            continue
        held = np.stack([given[first + block * stride :][:taken] for block in range(blocks)])
        unpacked = (_of_pairs if form == PAIRS else _of_vectors)(held)[:entries, :depth]
        if np.array_equal(unpacked, rows):
            return replace(
                call,
                function=call.function.replace(GATHER, f"{GATHER}_{form}"),
                header="uaccel_layout_blocks.h",
                struct="uaccel_gather_stream",
                parameters={
                    **{name: sizes[name] for name in ("entries", "count")},
                    "depth": depth,
                    "first": first,
                    "stride": stride,
                },
                arguments=(Constant("data", stream), *call.arguments[1:]),
            )
    return None


def _of_pairs(blocks: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Rows of blocks that hold two in 16 bits, 256 times the even one and the odd one."""
    halves = blocks.view("<i2").reshape(len(blocks), -1, 2, 4, 2)  # four inputs, whether odd, pair, which half
    odd = halves.astype(np.int8)
    even = ((halves - odd.astype(np.int32)) >> 8).astype(np.int8)
    both = np.stack([even, odd])  # row of pair, block, four inputs, whether odd, pair, half
    return both.transpose(1, 4, 0, 2, 5, 3).reshape(len(blocks) * EIGHT, -1)


def _of_vectors(blocks: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Rows of blocks of vectors, the even rows first."""
    vectors = blocks.view(np.int8).reshape(len(blocks), -1, 2, 4, 16)  # vector, whether odd, pair, byte
    return vectors.transpose(0, 3, 2, 1, 4).reshape(len(blocks) * EIGHT, -1)
