"""Defines plain data that every stage shares: tensors and their quantisation, models, names, arrays in a file."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from uaccel.util import incoming

# Tensors, their quantisation, and models; none of these types depends on TVM.

Shape = tuple[int, ...]
Array = NDArray[Any]
_T = TypeVar("_T")


@dataclass(frozen=True)
class TensorInfo:
    """Holds shape and element type of a tensor."""

    shape: Shape
    dtype: str

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return np.dtype(self.dtype).itemsize

    @property
    def size(self) -> int:
        """Its bytes."""
        return self.elements * self.itemsize

    def __str__(self) -> str:
        return f"{self.dtype} [{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Quantisation:
    """Gives stored integers a meaning: real = scale * (stored - zero_point).

    There is one entry for the tensor, or one for each slice along ``axis``.
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0

    @property
    def scale(self) -> float:
        return self.scales[0]

    @property
    def zero_point(self) -> int:
        return self.zero_points[0]

    @property
    def per_channel(self) -> bool:
        return len(self.scales) > 1

    def __str__(self) -> str:
        if self.per_channel:
            return f"per channel along axis {self.axis}"
        return f"scale {self.scale:.9g}, zero point {self.zero_point}"


@dataclass(frozen=True)
class Normalisation:
    """Says how raw values such as pixels become the real numbers of an input: (value - mean) / std.

    There is one number for all values, or one for each channel, which is the last axis."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class TensorSpec:
    """Describes a named tensor of the model, as its author knows it.

    ``range``: the least and the largest number that an input of indices, lengths or shifts may hold. ``labels``: names
    of classes along an axis of an output, or of the numbers in it."""

    name: str
    info: TensorInfo
    quantisation: Quantisation | None = None
    range: tuple[int, int] | None = None
    normalisation: Normalisation | None = None
    labels: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        quantisation, told = self.quantisation, self.normalisation
        more: dict[str, Any] = {} if self.range is None else {"range": list(self.range)}
        more |= {} if told is None else {"normalisation": {"mean": list(told.mean), "std": list(told.std)}}
        more |= {"labels": list(self.labels)} if self.labels else {}
        return more | {
            "shape": list(self.info.shape),
            "dtype": self.info.dtype,
            "scale": quantisation.scale if quantisation else None,
            "zero_point": quantisation.zero_point if quantisation else None,
        }


@dataclass(frozen=True)
class Signature:
    """Lists inputs and outputs of a model, in the file's order."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True, eq=False)
class StateSpec:
    """Describes a tensor that lasts from one inference to the next, and what it holds before the first."""

    spec: TensorSpec
    initial: NDArray[Any] = field(repr=False)


@dataclass(frozen=True)
class Bound:
    """Says which output of the model's file is the input of the next inference, by their numbers in the file.

    ``words`` say so by their names, as ``OUT=IN``."""

    output: int
    input: int
    words: str = ""


class Fed:
    """Runs a model's file, whose bound outputs are inputs of the next run, with the other inputs and outputs alone.

    ``bound`` is in the order of inputs, and ``first`` has a value for each of its entries."""

    def __init__(self, run: Callable[[list[Array]], list[Array]], bound: Sequence[Bound], first: Sequence[Array]):
        self._run, self._bound, self._values = run, bound, list(first)

    def __call__(self, inputs: Sequence[Array]) -> list[Array]:
        given = list(inputs)
        for pair, value in zip(self._bound, self._values, strict=True):
            given.insert(pair.input, value)
        outputs = self._run(given)
        self._values = [outputs[pair.output] for pair in self._bound]
        fed = {pair.output for pair in self._bound}
        return [value for number, value in enumerate(outputs) if number not in fed]


@dataclass(frozen=True)
class Origin:
    """Says where in the model file a layer comes from."""

    index: int
    op: str
    tensor: str


@dataclass(frozen=True)
class ModelFile:
    """Holds a model as its user gave it; ``suffix`` tells its format."""

    suffix: str
    data: bytes = field(repr=False)


@dataclass(frozen=True)
class ImportedModel:
    """Holds a model file as a Relax module, with what Relax has no place for.

    ``tensors`` and ``origins`` are keyed by the names of the module's variables, which are unique. ``file`` is None for
    a model that was never one file. ``real`` is the module of floats and quantisation steps that ``module`` was made
    of; None for a model whose operators are on integers already.

    ``main`` is pure. For each entry of ``state`` it takes one parameter more, behind the inputs: the value before the
    inference. It gives one result more, behind the outputs: the value after it.

    ``bound``: the first entries of ``state`` as the file has them, as outputs and inputs that ``signature`` lacks.
    """

    name: str
    source_format: str
    digest: str
    module: Any
    signature: Signature
    tensors: Mapping[str, TensorSpec]
    origins: Mapping[str, Origin]
    warnings: tuple[str, ...] = field(default=())
    file: ModelFile | None = None
    real: Any = None
    state: tuple[StateSpec, ...] = field(default=())
    bound: tuple[Bound, ...] = field(default=())


def c_identifier(text: str) -> str:
    """A name that C allows: other characters become underscores."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "unnamed"
    return f"_{name}" if name[0].isdigit() else name


def layer_name(operator: str, index: int) -> str:
    """A layer's name such as ``conv_3``: the operator and its number in the file, as Netron counts them."""
    return f"{c_identifier(operator).lower()}_{index}"


class UniqueNames:
    """Gives each name once; a repeated one gets a number, and no name given before changes."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, name: str) -> str:
        candidate, number = name, 1
        while candidate in self._taken:
            candidate, number = f"{name}_{number}", number + 1
        self._taken.add(candidate)
        return candidate


def unique_names(names: Iterable[str]) -> list[str]:
    """The names with the repeated ones numbered."""
    unique = UniqueNames()
    return [unique.take(name) for name in names]


# Arrays in a file that numpy.load reads: under any name, and with the same bytes for the same arrays.

# Bytes of all arrays of a file together, at most: a small file may claim to hold more than a computer has.
LARGEST: Final = 1 << 30
MOST_ARRAYS: Final = 10_000
_HEADERS: Final = 1 << 26  # Bytes of a file beside its arrays.
_NO_DATE = (1980, 1, 1, 0, 0, 0)  # the first that the format has


def write_npz(stream: IO[bytes], arrays: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    """Write arrays as numpy.savez does, but without a date, and under any name: savez has arguments of its own.

    Gives where in the file the elements of each array begin."""
    begins = {}
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy", _NO_DATE), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)
                begins[name] = stream.tell() - array.nbytes
    return begins


def read_npz(path: Path) -> dict[str, NDArray[Any]]:
    """Read all arrays, in this computer's byte order; ValueError and OSError say in words what is wrong."""

    def read(stream: IO[bytes]) -> dict[str, NDArray[Any]]:
        if stream.read(6) == b"\x93NUMPY":
            raise ValueError("it is a single array (.npy); wanted an .npz with one array per name")
        stream.seek(0)
        return npz_arrays(stream)

    return _read(path, read)


def npz_arrays(stream: IO[bytes]) -> dict[str, NDArray[Any]]:
    """Read all arrays of a stream, as :func:`read_npz` those of a file."""
    with _one_line():
        return _arrays(stream)


def read_npy(path: Path) -> NDArray[Any]:
    """Read the one array of a file in the same way."""
    return _read(path, _array)


def _read(path: Path, read: Callable[[IO[bytes]], _T]) -> _T:
    with incoming.opened(path, LARGEST + _HEADERS) as stream, _one_line():
        return read(stream)


@contextmanager
def _one_line() -> Iterator[None]:
    """Makes one type of all errors: numpy and zipfile raise a dozen unrelated ones where bytes make no sense."""
    try:
        yield
    except (ValueError, OSError):
        raise
    except Exception as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _array(stream: IO[bytes]) -> NDArray[Any]:
    """An array whose size is known before memory is taken for it: a header may state any."""
    version = np.lib.format.read_magic(stream)
    reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if reader is not None:  # another version is refused below, or has names of fields, which no tensor has
        shape, _, dtype = reader(stream)
        size = math.prod(shape) * dtype.itemsize
        if size > LARGEST:
            raise ValueError(f"it holds {size} bytes, and at most {LARGEST} are read; give less")
    stream.seek(0)
    array = np.lib.format.read_array(stream, allow_pickle=False)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


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
                arrays[name] = _array(content)
        return arrays
