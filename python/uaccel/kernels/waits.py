"""Estimates what the CPU waits for slow memory in a layer, without a run.

A board file says how a memory waits; ``firmware/ports/qemu_plugin/flash.h`` is the model by which runs count. Here
sizes tell the same. A loop is fetched anew each round if the cache does not hold its code. Constants are read anew each
pass over them, and a kernel passes as often as its costs grow with its pixels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from uaccel.board import Memory
from uaccel.kernels.terms import Sizes, Terms, term_of

INSTRUCTION: Final = 3.8  # Bytes of an instruction, on average: most of a kernel's loop take 4, some 2.
# Code that is executed for the results of one round of a kernel's loop. Loops that outgrow a cache are unrolled ones.
ROUND: Final = 8  # Results: two pixels of four channels, or eight units.
AROUND: Final = 400  # Bytes beside the products: what begins and finishes the results.
PRODUCT: Final = 24  # Bytes for one product of each of the results.
# Kernels that go through the weights of some channels for all pixels of these sizes, before those of the next: what
# they read anew stays in a cache. All others go through all weights for each block of pixels.
CHANNELS_FIRST: Final = {"uaccel_depthwise_lines": "l", "uaccel_depthwise_rows": "g", "uaccel_winograd": "g"}

_OF_LOOPS: Final = frozenset("plwctf 0123456789")  # Sizes that terms of a kernel's innermost loop have, and blocks.

# When the compiler copies constants into faster RAM.

WORD: Final = 4  # Bytes that one access reads.
TOGETHER: Final = 2  # Results that a kernel computes, about, with a weight once it has read it.
OFTEN: Final = 2.0  # Reads a byte and inference: a constant that is read only once does not earn RAM.


def saved_a_byte(wait_states: float) -> float:
    """The cycles that one read of one byte saves by waiting less: an access reads a word, and some results share it."""
    return wait_states / (WORD * TOGETHER)


class Part(NamedTuple):
    """A call of a layer: its function, the terms of its cost, its sizes, the bytes of its constants."""

    function: str
    terms: Terms
    sizes: Sizes
    constants: float


def waits_for_code(
    memory: Memory, symbols: Mapping[str, int], parts: Sequence[Part], made: int, cycles: float
) -> float:
    """What a layer waits that makes ``made`` elements. ``symbols``: the bytes of each of its functions. Without a cache
    all that is executed in these ``cycles`` is fetched."""
    in_time = memory.line / INSTRUCTION if memory.prefetch else 0.0
    cache = memory.code_cache or memory.cache
    products = max((part.sizes["f"] for part in parts), default=0.0)
    loop = min(max(symbols.values(), default=0), AROUND + PRODUCT * products)
    fetched = made / ROUND * max(0.0, loop - cache) if cache else cycles * INSTRUCTION
    return fetched / memory.line * max(0.0, memory.wait_states - in_time)


def waits_for_constants(memory: Memory, parts: Sequence[Part], reads: float) -> float:
    """What a layer waits whose constants all lie in this memory. ``reads`` is how often it reads each byte, where no
    terms say it: of a table a few entries may be read alone, each in a line of its own."""
    waited = 0.0
    for part in parts:
        passes = passes_of(part) if part.terms else min(reads * memory.line, max(1.0, reads))
        held = part.constants <= (memory.data_cache or memory.cache)
        waited += part.constants / memory.line * (min(1.0, passes) if held else passes)
    return waited * memory.wait_states


def passes_of(part: Part) -> float:
    """How often a call reads each of its constants: once for each block of pixels that it computes together, which the
    greatest of the terms with products tells."""
    given = next((size for name, size in CHANNELS_FIRST.items() if part.function.startswith(name)), "")
    if not given:
        loops = [
            term for term in part.terms if {word[0] for word in term.split()} <= set("plwctf") and set(term) & set("tf")
        ]
        given = max(loops, key=lambda term: part.terms[term] * term_of(term, part.sizes), default="p")
    blocks = [word for word in given.split() if word[0] in "plwg"]
    return math.prod(math.ceil(part.sizes[word[0]] / int(word[1:] or 1)) for word in blocks)


def copied(memories: Sequence[Memory], reads: float) -> bool:
    """Whether constants that are read so often are worth a copy in RAM; whether there is room turns out later."""
    saved = saved_a_byte(max((memory.wait_states * WORD / memory.line for memory in memories), default=0.0))
    return reads >= OFTEN and reads * saved >= 1
