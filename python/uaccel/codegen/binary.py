"""Writes a model's constants as one file of bytes, which an assembler file takes into the firmware by ``.incbin``.

A large model's constants as C are text of several times the bytes, which takes minutes to write and to compile. The
binary file is an ``.npz`` of uncompressed arrays, so that numpy reads it as well. Arrays in it are little-endian.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

from numpy.typing import NDArray

from uaccel.codegen.options import EmitOptions, Names
from uaccel.codegen.weights import Array, about, weights_source
from uaccel.model import write_npz

BINARY_FROM: Final = 16 << 20  # Bytes of constants from which they are binary, unless the user says how.

_CHECKS: Final = """\
#if !defined(__ELF__) || defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "these constants are for little-endian ELF files; regenerate them with --constants c"
#endif

/* Sections that the linker script places; define the two to name others. */
#ifndef UACCEL_CONSTANT_SECTION
#define UACCEL_CONSTANT_SECTION .rodata.uaccel_weights
#endif
#ifndef UACCEL_DEVICE_CONSTANT_SECTION
#define UACCEL_DEVICE_CONSTANT_SECTION .rodata.uaccel_device
#endif
"""


def constants_sources(
    names: Names, arrays: Sequence[Array], options: EmitOptions, provenance: str
) -> tuple[dict[str, str], dict[str, bytes]]:
    """The source with the constants by its name, and the binary file that it includes, if it does."""
    if not is_binary(arrays, options):
        return {f"{names.prefix}_weights.c": weights_source(names, arrays, provenance)}, {}
    file, begins = constants_file(arrays)
    text = assembler(names, arrays, begins, hashlib.sha256(file).hexdigest(), provenance)
    return {f"{names.prefix}_weights.S": text}, {f"{names.prefix}_weights.npz": file}


def is_binary(arrays: Sequence[Array], options: EmitOptions) -> bool:
    """Whether constants are binary: by the user's choice, else by their size."""
    if options.constants != "auto":
        return options.constants == "binary"
    return sum(array.data.nbytes for array in arrays) >= BINARY_FROM


def constants_file(arrays: Sequence[Array]) -> tuple[bytes, dict[str, int]]:
    """The binary file, and where in it each array begins, by its symbol."""
    stream = io.BytesIO()
    begins = write_npz(stream, {array.symbol: _little(array.data) for array in arrays})
    return stream.getvalue(), begins


def _little(data: NDArray[Any]) -> NDArray[Any]:
    return data.astype(data.dtype.newbyteorder("<"), copy=False)


def assembler(names: Names, arrays: Sequence[Array], begins: Mapping[str, int], digest: str, provenance: str) -> str:
    """The assembler file, with a symbol for each array. It names the digest of the binary file, as the digest of
    generated texts must change with the constants."""
    name = f"{names.prefix}_weights.npz"
    parts = [
        provenance,
        f"/* {name} has the bytes, little-endian, and numpy.load reads it. Assemble with its folder as -I.",
        f" * SHA-256 {digest} */",
        _CHECKS,
        *(_symbol(array, name, begins[array.symbol]) for array in arrays),
        '    .section .note.GNU-stack,"",%progbits',
    ]
    return "\n".join(parts) + "\n"


def _symbol(array: Array, file: str, offset: int) -> str:
    symbol, size = array.symbol, array.data.nbytes
    # As in C, an array of no elements has one that nobody reads.
    content = f'.incbin "{file}", {offset}, {size}' if size else f".zero {array.data.itemsize}"
    lines = [
        f'.section {_section(array)}, "a", %progbits',
        f".balign {array.alignment}",
        f".globl {symbol}",
        f".type {symbol}, %object",
        f".size {symbol}, {size or array.data.itemsize}",
    ]
    return "\n".join([about(array), *(f"    {line}" for line in lines), f"{symbol}:", f"    {content}\n"])


def _section(array: Array) -> str:
    if array.for_device:
        return "UACCEL_DEVICE_CONSTANT_SECTION"
    return f".rodata.uaccel_pool.{array.pool}" if array.pool else "UACCEL_CONSTANT_SECTION"
