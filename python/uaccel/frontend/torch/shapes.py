"""The shapes of a program's inputs: those of the file, and what the user gives where the file leaves them open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from uaccel.errors import ModelError
from uaccel.frontend.torch.program_file import FileInput, FileProgram
from uaccel.frontend.torch.serialised import Expression, Extent, need
from uaccel.model import Shape

InputShapes = Mapping[str, Shape]


def fixed_shapes(path: Path, file: FileProgram, given: InputShapes) -> tuple[dict[str, Shape], dict[str, int]]:
    """The shape of each input that a caller gives, and what each symbol is."""
    names = [entry.name for entry in file.inputs if _is_given(entry)]
    for name in given:
        if name not in names:
            raise ModelError(f'{path} has no input "{name}" for --input-shape; its inputs are: {", ".join(names)}')
    for entry in file.inputs:
        if entry.value[0].startswith("as_sym"):
            raise ModelError(f"{path}: an input is a number that may vary; export with a fixed one")
    shapes: dict[str, Shape] = {}
    symbols: dict[str, int] = {}
    for name in names:
        need(name in file.graph.tensors, f"input {name!r} has no shape")
        declared = file.graph.tensors[name].shape
        shapes[name] = _shape(path, name, declared, given.get(name))
        _bind(path, name, declared, shapes[name], file, symbols)
    return shapes, symbols


def _is_given(entry: FileInput) -> bool:
    return entry.stored is None and entry.value[0] == "as_tensor"


def _shape(path: Path, name: str, declared: tuple[Extent, ...], given: Shape | None) -> Shape:
    """The input's shape, where need be as the user gave it."""
    loose = [axis for axis, extent in enumerate(declared) if isinstance(extent, str)]
    shown = ["?" if isinstance(extent, Expression) else str(extent) for extent in declared]
    text = f"[{','.join(shown)}]"
    if given is None and loose:
        which = ", ".join(f'{axis} ("{shown[axis]}")' for axis in loose)
        example = ",".join(str(extent) if isinstance(extent, int) else "1" for extent in declared)
        plural = "s" if len(loose) > 1 else ""
        raise ModelError(
            f'{path}: input "{name}" {text} has the dynamic dimension{plural} {which}; firmware needs every '
            f"extent fixed: export without dynamic_shapes, or add --input-shape {name}:{example}, "
            f"or with the extent{plural} you want"
        )
    if given is None:
        return tuple(extent for extent in declared if isinstance(extent, int))
    said = f"--input-shape {name}:{','.join(map(str, given))}"
    if len(given) != len(declared):
        raise ModelError(f'{path}: {said} has {len(given)} extents; input "{name}" is {text}')
    for axis, (extent, wanted) in enumerate(zip(declared, given, strict=True)):
        if isinstance(extent, int) and extent != wanted:
            raise ModelError(
                f'{path}: {said} contradicts the file: dimension {axis} of input "{name}" {text} is fixed at {extent}'
            )
    return given


def _bind(
    path: Path, name: str, declared: tuple[Extent, ...], shape: Shape, file: FileProgram, symbols: dict[str, int]
) -> None:
    """Note what each symbol is; one that stands twice is the same, and within its range."""
    for axis, (extent, value) in enumerate(zip(declared, shape, strict=True)):
        if isinstance(extent, (int, Expression)):
            continue
        where = f'{path}: dimension {axis} of input "{name}" is {value}'
        if symbols.setdefault(extent, value) != value:
            raise ModelError(f'{where}; "{extent}" is {symbols[extent]} elsewhere, and the same everywhere')
        low, high = file.ranges.get(extent, (None, None))
        if (low is not None and value < low) or (high is not None and value > high):
            bounds = f"from {low if low is not None else 0}" + (f" to {high}" if high is not None else "")
            raise ModelError(f"{where}; the program takes extents {bounds}")
