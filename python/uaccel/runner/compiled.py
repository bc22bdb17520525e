"""Turns a compiled model into plain data: what is run, what the archive states of its layers, what is exported."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from uaccel.board import Board
from uaccel.build.archive_reader import Metadata
from uaccel.codegen.archive import archive
from uaccel.codegen.export.library import Export, Sample
from uaccel.errors import ModelError
from uaccel.lower.program import Layer
from uaccel.model import Array
from uaccel.pipeline import Compiled, Progress
from uaccel.report.compile_json import structure_file
from uaccel.runner.compare import compare
from uaccel.runner.execute import BoardBench, FirmwareMaker, Looks, RunResult
from uaccel.runner.firmware import ArchiveLayers, Firmware, wrong_archive
from uaccel.runner.verify import (
    Computed,
    Key,
    Reference,
    Samples,
    Tensors,
    WrongLayer,
    before_what_hides,
    golden_of,
    layers_of_engines,
    tensors_of_layers,
    tolerance_of,
    types_of,
)
from uaccel.tvm_api import each_by_itself, main_bindings
from uaccel.tvm_api.executor import Executor

# What an archive states of its layers, so that its firmware can be verified by the archive alone.
#
# For each layer it names the tensors of the model that the layer computes. Some layers compute values that the model
# does not have, for instance between fused operators. They are judged together with the next layer that does.

NO_TENSORS: Final = (
    "the archive does not tell which tensors of the model layers compute, so that outputs alone were compared: "
    "run MODEL instead of the project, or compile it with this uaccel"
)
GOLDEN: Final = "{} not judged: the vendor's own arithmetic is not in the archive; run MODEL instead of the project"


def reference_of_archive(compiled: Compiled) -> list[dict[str, Any]]:
    """Makes section "meanings" of the metadata: a row for each layer that can be judged, and each offloaded one.

    A layer can be judged if it is no view and every output of it is a tensor of the imported model. ``with`` lists the
    layers before it that cannot: a wrong result of it may be their fault."""
    tensors, hidden = tensors_of_layers(compiled), before_what_hides(compiled)
    engines, layers = layers_of_engines(compiled), compiled.program.layers
    known = {
        layer.index
        for layer in layers
        if not layer.is_view and all((layer.index, i) in tensors for i in range(len(layer.outputs)))
    }
    producers = {value.name: layer for layer in layers for value in layer.outputs}
    rows = []
    for layer in layers:
        tells = layer.index in known
        if not tells and layer.index not in engines:
            continue
        call = engines.get(layer.index)
        places = [tensors[layer.index, i] for i in range(len(layer.outputs))] if tells else []
        rows.append(
            {
                "layer": layer.index,
                "tensors": [{"name": name, "result": result} for name, result in places],
                "watched": [i for i in range(len(places)) if (layer.index, i) in hidden],
                "with": _unknown_before(layer, producers, known) if tells else [],
                "tolerance": tolerance_of(call),
                "golden": golden_of(call) is not None,
            }
        )
    return rows


def _unknown_before(layer: Layer, producers: Mapping[str, Layer], known: Set[int]) -> list[int]:
    """Walks back from a layer and returns the layers up to the nearest ``known`` ones, without views."""
    found: dict[int, Layer] = {}
    waiting = [layer]
    while waiting:
        for value in waiting.pop().inputs:
            before = producers.get(value.name)
            if before is not None and before.index not in known and before.index not in found:
                found[before.index] = before
                waiting.append(before)
    return sorted(index for index, each in found.items() if not each.is_view)


class ArchiveSubject:
    """Tells verification what it must know of firmware, of which only the archive is known.

    ``stated`` is what the archive states of its layers. After ``first_wrong`` the ``differences`` say how far layers
    are off, if they were counted."""

    def __init__(self, reference: Reference, metadata: Metadata) -> None:
        self.reference = reference
        self.stated = ArchiveLayers.read(metadata)
        self.differences: list[dict[str, Any]] = []

    @cached_property
    def _variables(self) -> dict[str, Any]:
        return {str(var.name): var for var, _ in main_bindings(self.reference.model.module)[1]}

    @property
    def watched(self) -> Tensors:
        """The tensors before operators that hide differences."""
        return {(row["layer"], i): self.tensors[row["layer"], i] for row in self.stated.rows for i in row["watched"]}

    @cached_property
    def tensors(self) -> Tensors:
        """The tensor of the model that each output of a layer is."""
        return {(row["layer"], i): self._place(row, i) for row in self.stated.rows for i in range(len(row["tensors"]))}

    def _place(self, row: Mapping[str, Any], output: int) -> tuple[str, int]:
        """Returns the binding and the result that an output is stated to be, if shape and type agree."""
        name, result = row["tensors"][output]["name"], row["tensors"][output]["result"]
        fields = types_of(self._variables[name]) if name in self._variables else []
        told = self.stated.layers[row["layer"]]["outputs"][output]
        if result >= len(fields) or not _is(fields[result], told):
            raise wrong_archive(f'layer {row["layer"]} is said to compute tensor "{name}", which the model has not')
        return name, result

    def unjudged(self) -> str:
        """Says what cannot be compared whatever the device shows."""
        golden = [self.stated.layers[row["layer"]]["name"] for row in self.stated.rows if row["golden"]]
        if golden:
            return GOLDEN.format(", ".join(golden))
        return "" if any(row["tensors"] for row in self.stated.rows) else NO_TENSORS

    def changed(self, _samples: Samples) -> str:
        """Says in words where a pass changed the meaning of the model; an archive does not have the modules."""
        return ""

    def first_wrong(self, samples: Samples, computed: Computed) -> WrongLayer | None:
        """Finds the first wrong layer, in the order of layers, each judged by the inputs that it really got.

        The model is cut at every tensor that a layer is known to compute, and each part gets the values that the device
        had there. A binding is cut only if all its results were read. If several layers have the value of one tensor,
        the first of them stands for it."""
        rows = {row["layer"]: row for row in self.stated.rows}
        keys: dict[tuple[str, int], Key] = {}
        for key, place in self.tensors.items():
            if key in computed[0]:
                keys.setdefault(place, key)
        cut = {name: var for name, var in self._variables.items() if all(each in keys for each in _results(name, var))}
        places = [each for name, var in cut.items() for each in _results(name, var)]
        executor = Executor(each_by_itself(self.reference.model.module, list(cut.values())))
        initial = [entry.initial for entry in self.reference.model.state]
        for number, (inputs, shown) in enumerate(zip(samples, computed, strict=False)):
            values = executor.run([*inputs, *initial, *(shown[keys[place]] for place in places)])
            for place, expected in sorted(zip(places, values, strict=True), key=lambda entry: keys[entry[0]]):
                wrong = self._judged(rows, keys[place], shown[keys[place]], expected, number)
                if wrong is not None:
                    return wrong
        return None

    def _judged(
        self, rows: Mapping[int, Mapping[str, Any]], key: Key, got: Array, expected: Array, sample: int
    ) -> WrongLayer | None:
        """Judges a layer together with those before it whose results are no tensors of the model.

        The largest tolerance of them holds for all. If one has arithmetic of its vendor's, nothing can be said."""
        together = rows[key[0]]["with"]
        parts = [rows[index] for index in (key[0], *together) if index in rows]
        if any(part["golden"] for part in parts):
            return None
        mismatch = compare(got, expected, max(part["tolerance"] for part in parts))
        if mismatch is None:
            return None
        layer, names = self.stated.layers[key[0]], tuple(self.stated.layers[index]["name"] for index in together)
        told = (layer["name"], layer["op"], layer["engine"])
        covers = tuple(covered["name"] for covered in layer["covers"])
        return WrongLayer(key[0], *told, key[1], mismatch, sample, covers=covers, together=names)


def _results(name: str, var: Any) -> list[tuple[str, int]]:
    return [(name, i) for i in range(len(types_of(var)))]


def _is(type_: Any, told: Mapping[str, Any]) -> bool:
    return (str(type_.dtype), [int(n) for n in type_.shape.values]) == (told["dtype"], told["shape"])


# What is run: the archive, and what its firmware reports of itself.


def archive_of(compiled: Compiled) -> dict[str, bytes]:
    """Returns the files of the model's archive, with what verification must know of its layers."""
    told = {"meanings": reference_of_archive(compiled), "warnings": compiled.warnings}
    return archive(compiled.generated, told) | structure_file(compiled)


def digest_of(files: Mapping[str, bytes]) -> str:
    """Returns the digest of an archive's files; it depends on their content, not on how they are packed."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode())
        digest.update(files[name])
    return digest.hexdigest()


def pack_compiled(compiled: Compiled) -> Firmware:
    """Packs what running the model takes, with its archive's files, as plain data."""
    files = archive_of(compiled)
    return Firmware.of(Metadata.of(files), digest_of(files), lambda: files)


def run_compiled(
    compiled: Compiled,
    board: Board,
    samples: list[list[Array]],
    folder: Path,
    progress: Progress,
    looks: Looks | None = None,
    **how: Any,
) -> RunResult:
    """Runs what was just compiled; the project is made in ``folder``.

    ``how``: arguments of :class:`~uaccel.runner.execute.BoardBench`."""
    bench = BoardBench(FirmwareMaker(pack_compiled(compiled), board, folder, progress, None), **how)
    with bench.ready():
        return bench.measure(samples, looks or Looks())


# What an export consists of: the compiled model, and a sample with its outputs.


def exported(compiled: Compiled, board: Board, inputs: Sequence[Array], command: str) -> Export:
    """Makes an export. ``inputs``: the example's sample; its outputs are those of the model as it was imported."""
    options = compiled.options
    if options.pools or options.workspace_io or options.feed:
        raise ModelError("exports hold the plain interface; leave away pools, --workspace-io and --feed")
    outputs, _ = Reference.of(compiled).run(list(inputs))
    tolerance = max((tolerance_of(call) for call in compiled.partitioned.calls.values()), default=0)
    return Export(compiled.generated, Sample(tuple(inputs), tuple(outputs), tolerance), board, command)
