"""Provides inputs for a run: made up where the user gives none, or read from files with labels."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.errors import InputError, need
from uaccel.model import LARGEST, Array
from uaccel.quantize.calibration import IMAGES, ModelInput, Pixels, given
from uaccel.session.tensors import TensorType, input_arrays, load_inputs, ramp, read_array, read_arrays, samples_of
from uaccel.util import incoming

# Inputs when the user gives none: a ramp, and for verification samples that show what a ramp hides.

SAMPLES: Final = 8  # How many samples verification takes if the user does not say.
# The largest number in tensors of 32 and 64 bits, which often are indices; the ramp has no larger ones either.
WIDE: Final = 127


def default_samples(tensors: Sequence[TensorType], count: int, seed: int = 0) -> list[list[Array]]:
    """Makes a ramp, zeros, all least, all largest, least and largest in turn, then random numbers from ``seed``.

    Extremes show sums that overflow, zeros what is added besides the products."""
    made = [
        [ramp(tensor) for tensor in tensors],
        [_zeros(tensor) for tensor in tensors],
        [_filled(tensor, 0) for tensor in tensors],
        [_filled(tensor, 1) for tensor in tensors],
        [_by_turns(tensor) for tensor in tensors],
    ]
    generator = np.random.default_rng(seed)
    while len(made) < count:
        made.append([_random(tensor, generator) for tensor in tensors])
    return made[:count]


def samples_from(
    values: Mapping[str, Any] | Array | str | Path | None, tensors: Sequence[TensorType], count: int, seed: int
) -> tuple[list[list[Array]], list[list[Array]]]:
    """Returns the samples that a program is told of, and those that are only compared: made ones, if it gives none."""
    if values is None:
        first, *others = default_samples(tensors, count, seed)
        return [first], others
    if isinstance(values, (str, Path)):
        return load_inputs(Path(values), tensors), []
    return samples_of(named_arrays(values, tensors, "input"), tensors, "inputs"), []


def named_arrays(values: Any, tensors: Sequence[TensorType], kind: str) -> dict[str, Array]:
    """Returns arrays by name; one array stands for the only tensor there is."""
    if isinstance(values, Mapping):
        return {name: np.asarray(value) for name, value in values.items()}
    if len(tensors) != 1:
        names = ", ".join(f'"{tensor.name}"' for tensor in tensors)
        raise InputError(f"one array was given for {len(tensors)} {kind}s; give a dictionary with {names}")
    return {tensors[0].name: np.asarray(values)}


def _zeros(tensor: TensorType) -> Array:
    least = tensor.range[0] if tensor.range is not None else 0
    return np.full(tensor.shape, max(least, 0), tensor.dtype)


def _limits(tensor: TensorType) -> tuple[float, float]:
    if tensor.range is not None:
        return tensor.range
    kind = np.dtype(tensor.dtype)
    if kind.kind == "b":
        return 0, 1
    if kind.kind not in "iu":
        return -1.0, 1.0
    info = np.iinfo(kind)
    return (info.min, info.max) if kind.itemsize < 4 else (max(info.min, -WIDE), WIDE)


def _filled(tensor: TensorType, side: int) -> Array:
    return np.full(tensor.shape, _limits(tensor)[side], tensor.dtype)


def _by_turns(tensor: TensorType) -> Array:
    low, high = _limits(tensor)
    return np.resize(np.array([low, high], tensor.dtype), tensor.shape)


def _random(tensor: TensorType, generator: np.random.Generator) -> Array:
    low, high = _limits(tensor)
    if np.dtype(tensor.dtype).kind == "f" and tensor.range is None:
        return generator.uniform(low, high, tensor.shape).astype(tensor.dtype)
    return generator.integers(int(low), int(high), tensor.shape, endpoint=True).astype(tensor.dtype)


# Samples with labels. Samples are an .npz or .npy file or a folder of .npy files, labels .npy, .csv or .txt.

LABEL_COLUMNS: Final = ("label", "class")
DIGITS: Final = 9  # The most digits of a label.
QUANTISED: Final = ("int8", "uint8", "int16")  # Types of inputs that take real numbers.


@dataclass(frozen=True)
class Grid:
    """Holds the quantisation of a tensor; ``scale`` is None where its integers stand for themselves.

    ``mean`` and ``std`` make real numbers of raw values, where the model's file says how (:class:`Normalisation`)."""

    scale: float | None
    zero_point: int
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    def stored(self, values: Array, dtype: str) -> tuple[Array, str]:
        """Returns values as elements of a tensor, and in words what became of them.

        Bytes are raw values, such as pixels, and floats are real numbers: so a float model and its quantised form take
        the same arrays."""
        done = []
        fitting = {len(self.mean), len(self.std)} <= {1, *values.shape[-1:]}
        if self.mean and fitting and values.dtype == np.uint8 and dtype != "uint8":
            values = ((values - np.asarray(self.mean)) / np.asarray(self.std)).astype(np.float32)
            done.append(f"(value - {_numbers(self.mean)}) / {_numbers(self.std)}, as the file's metadata say")
        if values.dtype.kind == "f" and dtype in QUANTISED and self.scale:
            values = self.integers(values, dtype)
            done.append(f"real numbers to {dtype}")
        return values, ", then ".join(done)

    def integers(self, values: Array, dtype: str) -> Array:
        """Quantises real numbers; halves are rounded away from zero."""
        limits = np.iinfo(dtype)
        steps = values.astype(np.float64) / (self.scale or 1.0)
        rounded = np.sign(steps) * np.floor(np.abs(steps) + 0.5) + self.zero_point
        found: Array = np.clip(rounded, limits.min, limits.max).astype(dtype)
        return found


def _numbers(values: Sequence[float]) -> str:
    texts = [f"{value:.6g}" for value in values]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _stored(
    arrays: dict[str, Array], tensors: Sequence[TensorType], grids: Sequence[Grid], source: Path
) -> tuple[dict[str, Array], list[str]]:
    """Makes elements of tensors of arrays by name, and says what was done."""
    notes = []
    for tensor, grid in zip(tensors, grids, strict=True):
        array = arrays.get(tensor.name)
        if array is None:
            continue
        if array.dtype.kind == "f" and tensor.dtype in QUANTISED and grid.scale and np.isnan(array).any():
            raise InputError(f'{source}: input "{tensor.name}" holds a NaN, which no {tensor.dtype} stands for')
        arrays[tensor.name], note = grid.stored(array, tensor.dtype)
        notes += [f"{tensor.name}: {note}"] if note else []
    return arrays, notes


def given_samples(
    path: Path, tensors: Sequence[TensorType], rows: Mapping[str, Any]
) -> tuple[list[list[Array]], list[str]]:
    """Reads the user's samples, and says what became of them: arrays, an image, or a folder of images.

    ``rows``: what reports say of the inputs. Only where the file says how raw values become real numbers, arrays may
    be of another type than the input."""
    told = [grid_of(rows.get(tensor.name, {})) for tensor in tensors]
    grids = [grid if grid.mean else Grid(None, 0) for grid in told]
    known = any(grid.mean or tensor.dtype == "uint8" for grid, tensor in zip(grids, tensors, strict=True))
    pictures = path.suffix.lower() in IMAGES or (known and path.is_dir())
    arrays, notes = _stored(
        _pictures(path, tensors, grids) if pictures else input_arrays(path, tensors), tensors, grids, path
    )
    return samples_of(arrays, tensors, str(path)), notes


def _pictures(path: Path, tensors: Sequence[TensorType], grids: Sequence[Grid]) -> dict[str, Array]:
    """Reads images, cut to the shape of the input, as bytes."""
    for tensor, grid in zip(tensors, grids, strict=True):
        if tensor.dtype != "uint8" and not grid.mean:
            raise InputError(
                f'{path}: nothing says how pixels become the numbers of input "{tensor.name}" ({tensor.dtype}), since '
                "the model's file has no such metadata; give arrays (.npz)"
            )
    return given(path, [ModelInput(tensor.name, "uint8", tensor.shape) for tensor in tensors], Pixels()).arrays


@dataclass(frozen=True)
class Labelled:
    """Holds samples, the label of each, and what became of the samples.

    A sample is a sequence of frames, often of one: an array for each input."""

    samples: list[list[list[Array]]]
    labels: Array
    notes: list[str] = field(default_factory=list)


def read_labelled(
    data: Path,
    labels: Path,
    tensors: Sequence[TensorType],
    grids: Sequence[Grid],
    classes: Sequence[str] = (),
    *,
    in_frames: bool = False,
) -> Labelled:
    """Reads samples and as many labels, which may be names of classes; floats for an integer input are quantised. With
    ``in_frames`` the first axis of a sample counts its frames."""
    arrays, names, lengths = _read_data(data, tensors, in_frames=in_frames)
    arrays, notes = _stored(arrays, tensors, grids, data)
    frames = samples_of(arrays, tensors, str(data))
    ends = np.cumsum(lengths or [1] * len(frames)).tolist()
    samples = [frames[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    found = _read_labels(labels, names, classes)
    if len(found) != len(samples):
        raise InputError(f"{data} has {len(samples)} samples and {labels} {len(found)} labels; give one for each")
    return Labelled(samples, found, notes)


def _read_data(
    path: Path, tensors: Sequence[TensorType], *, in_frames: bool
) -> tuple[dict[str, Array], list[str], list[int]]:
    """Returns a batch for each input by name, the names of files where each sample has its own, and how many frames
    each sample has, if it consists of such: then the batches are of frames."""
    if path.suffix == ".npz":
        arrays = read_arrays(path)
        arrays = {tensors[0].name: next(iter(arrays.values()))} if len(arrays) == len(tensors) == 1 else arrays
        return _in_batches(path, arrays, tensors, in_frames=in_frames)
    if len(tensors) != 1:
        raise InputError(f"--data {path}: the model has {len(tensors)} inputs; give an .npz file with them by name")
    if path.is_dir():
        files = sorted(path.glob("*.npy"))
        need(files, f"--data {path} has no .npy files; give one for each sample, or an .npz or .npy file", InputError)
        rows: list[Array] = []
        for file in files:
            rows.append((_frames_of if in_frames else _reshaped)(file, read_array(file, "--data "), tensors[0]))
            if sum(row.nbytes for row in rows) > LARGEST:
                raise InputError(f"--data {path} holds more than {LARGEST} bytes of samples; give fewer of them")
        batch = np.concatenate(rows) if in_frames else np.stack(rows)
        return {tensors[0].name: batch}, [file.name for file in files], [len(row) for row in rows] if in_frames else []
    if path.suffix == ".npy":
        return _in_batches(path, {tensors[0].name: read_array(path, "--data ")}, tensors, in_frames=in_frames)
    raise InputError(f"--data {path}: wanted an .npz or .npy file, or a folder of .npy files")


def _in_batches(
    path: Path, arrays: dict[str, Array], tensors: Sequence[TensorType], *, in_frames: bool
) -> tuple[dict[str, Array], list[str], list[int]]:
    """Joins all sequences of each input to one batch of frames, where samples are in frames."""
    if not in_frames:
        return arrays, [], []
    batches, counts = dict(arrays), set()
    for tensor in tensors:
        if tensor.name in arrays:
            sequences = [_frames_of(path, sequence, tensor) for sequence in arrays[tensor.name]]
            batches[tensor.name] = np.concatenate(sequences) if sequences else arrays[tensor.name]
            counts.add(tuple(map(len, sequences)))
    if len(counts) > 1:
        raise InputError(f"{path}: inputs have different numbers of sequences or frames; give each the same")
    return batches, [], list(next(iter(counts), ()))


def _frames_of(file: Path, array: Array, tensor: TensorType) -> Array:
    """One sequence as a batch of frames."""
    usual = (tensor.shape, *([tensor.shape[1:]] if tensor.shape[:1] == (1,) else []))
    if array.ndim == 0 or len(array) == 0 or array.shape[1:] not in usual:
        raise InputError(
            f"{file}: a sequence has shape {list(array.shape)}; "
            f"wanted its frames along a first axis, each {list(tensor.shape)}"
        )
    return array.reshape(-1, *tensor.shape)


def _reshaped(file: Path, array: Array, tensor: TensorType) -> Array:
    if array.shape not in (tensor.shape, tensor.shape[1:]):
        raise InputError(f"{file} has shape {list(array.shape)}, the model wants {list(tensor.shape)}")
    return array.reshape(tensor.shape)


def _read_labels(path: Path, names: list[str], classes: Sequence[str]) -> Array:
    if path.suffix == ".npy":
        array = read_array(path, "--labels ")
        if array.dtype.kind not in "iu":
            raise InputError(f"--labels {path} holds {array.dtype}; wanted whole numbers, one for each sample")
        return array.reshape(-1).astype(np.int64)
    need(path.suffix in (".csv", ".txt"), f"--labels {path}: wanted a file .npy, .csv or .txt", InputError)
    try:
        text = incoming.read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read --labels {path}: {getattr(error, 'strerror', None) or error}") from error
    if path.suffix == ".txt":
        lines = [(i, line) for i, line in enumerate(text.split("\n"), 1) if line.strip()]
        return np.array([_label(path, i, line, classes) for i, line in lines], np.int64)
    return _from_csv(path, text, names, classes)


def _from_csv(path: Path, text: str, names: list[str], classes: Sequence[str]) -> Array:
    """Reads the column that is named after labels, else the last; with a folder the first column names the file."""
    rows = [(i, [cell.strip() for cell in row]) for i, row in enumerate(csv.reader(text.splitlines()), 1) if any(row)]
    column = -1
    if rows and not rows[0][1][-1].lstrip("-").isdigit() and rows[0][1][-1] not in classes:
        head = [cell.lower() for cell in rows.pop(0)[1]]
        column = next((head.index(name) for name in LABEL_COLUMNS if name in head), -1)
    if rows and column >= min(len(row) for _, row in rows):
        raise InputError(f"--labels {path}: a line has fewer columns than the first one; give each the same")
    found = [(row[0], _label(path, i, row[column], classes)) for i, row in rows]
    if not names or not rows or len(rows[0][1]) == 1:
        return np.array([label for _, label in found], np.int64)
    by_name = {Path(name).name: label for name, label in found}
    missing = [name for name in names if name not in by_name]
    if missing:
        raise InputError(f"--labels {path} has no line for {missing[0]}; begin one with that name")
    return np.array([by_name[name] for name in names], np.int64)


def _label(path: Path, line: int, text: str, classes: Sequence[str]) -> int:
    """Reads a label: a number, or the name of a class."""
    label = text.strip()
    if label in classes:
        return list(classes).index(label)
    if not label.isdecimal() or len(label) > DIGITS:
        shown = label if len(label) < 40 else label[:36] + "..."
        wanted = "a whole number from 0" + (f", or a name such as {classes[0]!r}" if classes else "")
        raise InputError(f"--labels {path}, line {line}: {shown!r} is no label; wanted {wanted}")
    return int(label)


def grid_of(row: dict[str, Any]) -> Grid:
    """Makes a grid of what a report says of a tensor."""
    scale, told = row.get("scale"), row.get("normalisation") or {}
    grid = Grid(scale if isinstance(scale, float) else None, int(row.get("zero_point") or 0))
    return replace(grid, mean=tuple(told.get("mean", ())), std=tuple(told.get("std", ())))
