"""Imports model files as Relax modules.

A new format needs a row in ``FORMATS``, a function that reads a file, and a table of converters.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uaccel.errors import ModelError, need
from uaccel.frontend import bundle
from uaccel.frontend.limits import limited

if TYPE_CHECKING:  # Listing the formats must not load TVM.
    from uaccel.model import ImportedModel, Shape


@dataclass(frozen=True)
class ModelFormat:
    """Describes a file format; ``reader`` is the module and function that reads a file, imported when one is read.

    ``islands``: quantised models have float operators between quantisation steps (see ``frontend.qdq``). ``quantising``
    tells users how to quantise a model. ``beside``: the function that names further files of a model.
    """

    name: str
    suffix: str
    reader: str
    quantising: str
    islands: bool = True
    beside: str = ""


FORMATS: Final = (
    ModelFormat(
        "tflite",
        ".tflite",
        "uaccel.frontend.tflite.importer:import_tflite",
        "have the TFLite converter quantise it (a representative_dataset, int8 operators)",
        islands=False,
    ),
    ModelFormat(
        "onnx",
        ".onnx",
        "uaccel.frontend.onnx.importer:import_onnx",
        "uaccel quantize MODEL.onnx --calibration DATA.npz does it",
        beside="uaccel.frontend.onnx.reader:weight_files",
    ),
    ModelFormat(
        "torch.export",
        ".pt2",
        "uaccel.frontend.torch.isolated:import_isolated",
        "uaccel quantize MODEL.pt2 --calibration DATA.npz does it, or PT2E before exporting (torchao's prepare_pt2e)",
    ),
)
SUFFIXES: Final = ", ".join(known.suffix for known in FORMATS)
# How a file of another format becomes one of these. ``{0}`` is its name, ``{1}`` the name without suffix.
_KERAS: Final = (
    "convert it: import tensorflow as tf; m = tf.keras.models.load_model('{0}'); "
    "open('{1}.tflite', 'wb').write(tf.lite.TFLiteConverter.from_keras_model(m).convert())"
)
_TORCH: Final = "export its program: torch.export.save(torch.export.export(model.eval(), inputs), '{1}.pt2')"
REMEDIES: Final[Mapping[str, str]] = {
    ".keras": _KERAS,
    ".h5": _KERAS,
    ".pte": f"it is compiled for ExecuTorch; {_TORCH}",
    ".pt": _TORCH,
    ".pth": _TORCH,
}


def import_model(
    path: Path,
    input_shapes: Mapping[str, Shape] | None = None,
    state: Sequence[str] = (),
    state_from: Path | None = None,
) -> ImportedModel:
    """Reads a model file; the format follows from its suffix. ``input_shapes`` fixes what the file leaves open.

    ``state`` has words ``OUT=IN``: that output is this input of the next inference. Before the first it is what the
    file ``state_from`` holds, or zero."""
    inside = bundle.is_inside(path)
    if not inside and not path.exists():
        raise ModelError(f"no model file {path}; check the path")
    need(not path.is_dir(), f"{path} is a directory, wanted a model file ({SUFFIXES})")
    given, path = path, bundle.chosen(path)
    found = _format_of(path)
    if found is None:
        remedy = REMEDIES.get(path.suffix.lower(), "").format(path.name, path.stem)
        wanted = f"wanted {SUFFIXES}" + (f"; {remedy}" if remedy else "")
        raise ModelError(f"{path}: suffix {path.suffix or 'missing'!r} is not known; {wanted}")
    with limited(path):
        model: ImportedModel = _named(found.reader)(path, input_shapes or {})
        model = replace(model, name=bundle.stem(given)) if inside else model
        whole = _with_ranges(model if not found.islands else _integers(model))
        bound: ImportedModel = _named("uaccel.frontend.state:bind")(whole, state, state_from)
        return bound


def _integers(model: ImportedModel) -> ImportedModel:
    from uaccel.frontend.qdq.rewrite import integers

    return integers(model)


def _with_ranges(model: ImportedModel) -> ImportedModel:
    """Notes which inputs are indices, and how far they reach."""
    from uaccel.tvm_api.index_ranges import input_ranges

    ranges = input_ranges(model.module["main"])
    inputs = tuple(replace(spec, range=fits) for spec, fits in zip(model.signature.inputs, ranges, strict=False))
    return replace(model, signature=replace(model.signature, inputs=inputs))


def files_beside(path: Path) -> tuple[Path, ...]:
    """The further files of a model, such as weights outside the model file."""
    found = _format_of(path)
    files: tuple[Path, ...] = _named(found.beside)(path) if found is not None and found.beside else ()
    return files


def _format_of(path: Path) -> ModelFormat | None:
    return next((known for known in FORMATS if known.suffix == path.suffix.lower()), None)


def _named(words: str) -> Any:
    module, _, function = words.partition(":")
    return getattr(importlib.import_module(module), function)


def quantising(source_format: str) -> str:
    """Advice on how to quantise a model of this format."""
    return next(known.quantising for known in FORMATS if known.name == source_format)
