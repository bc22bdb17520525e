"""What ``metadata.json`` of an archive may say: what is of another form is refused before anything reads it."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from support.hostile.json_mutants import change, places
from support.models.networks import OWN
from uaccel.accelerator import load_accelerators
from uaccel.build.archive_reader import Metadata, read_metadata, read_model, wrong_with
from uaccel.build.linker_script import needs_of
from uaccel.cli.verdict import show_run
from uaccel.errors import UaccelError
from uaccel.frontend import import_model
from uaccel.model import ImportedModel
from uaccel.pipeline import compile_model
from uaccel.report import page
from uaccel.report.archived import STRUCTURE, told_of_archive
from uaccel.runner.compiled import ArchiveSubject, archive_of
from uaccel.runner.execute import RunResult
from uaccel.runner.firmware import ArchiveLayers, Firmware
from uaccel.runner.options import ProjectRunOptions
from uaccel.runner.perform import Place, performed
from uaccel.runner.prepare import Prepared
from uaccel.runner.verify import Reference
from uaccel.session.batch import BatchRun
from uaccel.util.files import write_tar

WISHES = ProjectRunOptions(details=True)


@cache
def document(model: str, *accelerators: str, file: str = "metadata.json") -> Any:
    compiled = compile_model(OWN / f"{model}.tflite", board="host", accelerators=load_accelerators(accelerators))
    return json.loads(archive_of(compiled)[file])


def archive_with(path: Path, metadata: Any) -> Path:
    with path.open("wb") as stream:
        write_tar(stream, {"metadata.json": json.dumps(metadata).encode()})
    return path


def use(archive: Path, metadata: Metadata) -> None:
    """All that commands take out of it."""
    needs_of({"metadata.json": metadata.text})
    assert isinstance(metadata.board, str | None)
    assert all(isinstance(need, str) for need in metadata.requires)
    firmware = Firmware.of(metadata, "", dict)
    verified(metadata)
    sum(tensor["size"] for side in ("inputs", "outputs") for tensor in metadata.main[side].values())
    show_run(Console(quiet=True), report_of(firmware, metadata, {}))
    read_model(archive, metadata)


def report_of(firmware: Firmware, metadata: Metadata, files: dict[str, bytes]) -> Any:
    """What is told of a run of which nothing is known but the archive."""
    prepared = Prepared(replace(firmware, outputs=()), told_of_archive(metadata, files.get))
    measured = RunResult([[]], BatchRun([[]], 0), None)
    return performed(prepared, WISHES, measured, Place("host", None, False, ""), None).report


def verified(metadata: Metadata) -> None:
    """What verification is told, and which tensors of the model that is about."""
    stated = ArchiveLayers.read(metadata)
    assert stated.tolerance >= 0
    assert isinstance(stated.exact, bool)
    assert set(stated.to_read(every_layer=True, alone=True)) <= set(range(len(metadata.at("uaccel", "layers"))))
    name = metadata.at("uaccel", "model", "name")
    if name in ("stream", "gesture"):
        subject = ArchiveSubject(Reference(imported(name)), metadata)
        assert isinstance(subject.unjudged(), str)
        assert subject.tensors.keys() >= subject.watched.keys()


@cache
def imported(name: str) -> ImportedModel:
    return import_model(OWN / f"{name}.tflite")


def outcome(path: Path, metadata: Any) -> str:
    """What is said against it; empty where there is nothing to say, and nothing of it makes a reader stumble."""
    archive = archive_with(path, metadata)
    try:
        use(archive, read_metadata(archive))
    except UaccelError as error:
        return str(error)
    return ""


def mutants(count: int, first: int = 0) -> list[Any]:
    found = []
    for seed in range(first, first + count):
        rng = random.Random(seed)
        made = copy.deepcopy((document("stream"), document("gesture", "matrix8"))[seed % 2])
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            at = list(places(made))
            if at:
                change(*rng.choice(at), at, rng)
        found.append(made)
    return found


def try_mutants(folder: Path, made: list[Any]) -> None:
    said = [outcome(folder / "mutant.tar", metadata) for metadata in made]
    assert all("\n" not in text and text.isprintable() for text in said)
    refused = sum("in metadata.json " in text for text in said)
    assert len(made) // 5 < refused < len(made)


def test_what_is_wrong_by_structure_is_refused_or_harmless(tmp_path: Path) -> None:
    try_mutants(tmp_path, mutants(60))


def paged(metadata: Metadata, structure: Any) -> str:
    """What the page of an archive with this structure says where it refuses it."""
    try:
        page([report_of(Firmware.of(metadata, "", dict), metadata, {STRUCTURE: json.dumps(structure).encode()})])
    except UaccelError as error:
        return str(error)
    return ""


def test_a_structure_for_pages_that_is_wrong_is_refused_or_shown() -> None:
    metadata, said = Metadata(b"", document("gesture", "matrix8")), []
    for seed in range(60):
        made, rng = copy.deepcopy(document("gesture", "matrix8", file=STRUCTURE)), random.Random(seed)
        change(*rng.choice(list(places(made))), list(places(made)), rng)
        said.append(paged(metadata, made))
    refused = [text for text in said if text]
    assert all(text.startswith("report.json of the archive: ") for text in refused)
    assert 12 < len(refused) < 60


@pytest.mark.slow
def test_much_that_is_wrong_by_structure(tmp_path: Path) -> None:
    try_mutants(tmp_path, mutants(1000, first=1000))


@pytest.mark.parametrize("model", [("gesture",), ("stream",), ("residual",), ("gesture", "matrix8")], ids="-".join)
def test_what_is_compiled_is_of_the_form(model: tuple[str, ...]) -> None:
    assert wrong_with(document(*model)) == ""


def changed(*path: Any, to: Any) -> Any:
    """The document of a model with another value there; ``to=...``: without it."""
    made = copy.deepcopy(document("gesture"))
    holder = made
    for key in path[:-1]:
        holder = holder[key]
    if to is ...:
        del holder[path[-1]]
    else:
        holder[path[-1]] = to
    return made


MAIN = ("modules", "gesture", "memory", "functions", "main")
AT = "modules['gesture'].memory.functions.main"
WRONG = {
    "modules that are none": (changed("modules", to=[]), "modules is [], wanted an object"),
    "a name that is none in C": (
        changed("modules", "a)(b", to={}),
        "modules names 'a)(b', wanted letters, digits and underscores",
    ),
    "no memory": (changed(*MAIN[:3], to=...), "modules['gesture'].memory is missing"),
    "a size below nothing": (
        changed(*MAIN, 0, "io_size_bytes", to=-1),
        f"{AT}[0].io_size_bytes is -1, wanted a whole number from 0 to 1099511627776",
    ),
    "true for a size": (
        changed(*MAIN, 0, "inputs", "motion", "size", to=True),
        f"{AT}[0].inputs['motion'].size is True, wanted a whole number from 0 to 1099511627776",
    ),
    "facts that are none": (changed("uaccel", to=5), "uaccel is 5, wanted an object"),
    "a digest that is none": (
        changed("uaccel", "build", to="g" * 100),
        f"uaccel.build is '{'g' * 59}..., wanted 16 hexadecimal digits",
    ),
    "a shape that is none": (
        changed("uaccel", "layers", 1, "outputs", 0, "shape", to=[1, "2"]),
        "uaccel.layers[1].outputs[0].shape is [1, '2'], wanted at most 32 whole numbers from 0 to 1099511627776",
    ),
    "a layer without a name": (
        changed("uaccel", "layers", 0, "name", to=...),
        "uaccel.layers[0].name is missing",
    ),
    "a tolerance below nothing": (
        changed("uaccel", "accelerators", to=[{"name": "a", "tolerance": -0.5}]),
        "uaccel.accelerators[0].tolerance is -0.5, wanted a number from 0",
    ),
    "text for yes": (
        changed("uaccel", "workspace_io", to="no"),
        "uaccel.workspace_io is 'no', wanted true or false",
    ),
    "a name for the terminal": (
        changed("uaccel", "board", to=["\x1b[31m"]),
        "uaccel.board is ['\\x1b[31m'], wanted text",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_of_another_form(name: str, tmp_path: Path) -> None:
    metadata, words = WRONG[name]
    path = archive_with(tmp_path / "model.tar", metadata)
    with pytest.raises(UaccelError) as caught:
        read_metadata(path)
    assert str(caught.value) == f"archive {path}: in metadata.json {words}; compile the model anew"


def test_an_archive_of_another_compiler(tmp_path: Path) -> None:
    """Has no facts of ours: its project can be made, and what needs them says so."""
    path = archive_with(tmp_path / "model.tar", {"version": 7, "modules": {"other": {"memory": None}}})
    metadata = read_metadata(path)
    assert (metadata.model, metadata.board, metadata.workspace_io, metadata.requires) == ("other", None, False, [])
    with pytest.raises(UaccelError) as caught:
        metadata.at("uaccel", "layers")
    assert str(caught.value) == "metadata.json of the archive has no uaccel.layers; compile the model with this uaccel"
