"""Arrays in a file that numpy.load reads: under any name, and the same bytes for the same arrays."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

LARGEST: Final = 1 << 30
"""Bytes of all arrays of a file together: a small one may claim to hold more than a computer has."""
MOST_ARRAYS: Final = 10_000
_NO_DATE = (1980, 1, 1, 0, 0, 0)  # the first that the format has


def write_npz(stream: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> None:
    """What numpy.savez does, but for its clock and for the names that it takes for arguments of its own."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _NO_DATE), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays, in this computer's byte order; ValueError and OSError say in words what is wrong."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise ValueError("it is no regular file")
    with path.open("rb") as stream:
        if stream.read(6) == b"\x93NUMPY":
            raise ValueError("it is a single array (.npy); wanted an .npz with one array per name")
        stream.seek(0)
        try:
            return _arrays(stream)
        except (ValueError, OSError):
            raise
        except Exception as error:  # numpy and zipfile raise a dozen unrelated types where bytes make no sense
            raise ValueError(str(error) or type(error).__name__) from error


def _arrays(stream: IO[bytes]) -> dict[str, NDArray[Any]]:
    with zipfile.ZipFile(stream) as archive:
        entries = archive.infolist()
        total = sum(entry.file_size for entry in entries)
        if len(entries) > MOST_ARRAYS or total > LARGEST:
            raise ValueError(
                f"it holds {len(entries)} arrays of {total} bytes; at most {MOST_ARRAYS} of {LARGEST} are read"
            )
        arrays = {}
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            if name == entry.filename or name in arrays:
                raise ValueError(
                    f'"{entry.filename}" is no array, or a second one of its name; write the file with numpy.savez'
                )
            with archive.open(entry) as content:
                array = np.lib.format.read_array(content, allow_pickle=False)
            arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
        return arrays
