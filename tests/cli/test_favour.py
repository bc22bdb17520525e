"""``--favour``: what a compilation saves; metadata and the repeating command say it, and balanced goes without."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from support.models.networks import OWN
from support.run.command import Call
from uaccel.errors import UaccelError
from uaccel.runner.job import Job

GESTURE = OWN / "gesture.tflite"


def test_the_archive_says_what_was_favoured(tmp_path: Path, call: Call) -> None:
    report = json.loads(call("compile", GESTURE, "--favour", "ram", "-o", tmp_path / "m.tar", "--json").out)
    assert report["favour"] == "ram"
    with tarfile.open(tmp_path / "m.tar") as archive:
        texts = {name: archive.extractfile(name) for name in archive.getnames() if name.endswith((".json", ".h"))}
        read = {name: file.read().decode() for name, file in texts.items() if file is not None}
    metadata = json.loads(next(text for name, text in read.items() if name.endswith("metadata.json")))
    assert metadata["uaccel"]["favour"] == "ram"
    assert any("--name gesture --favour ram" in text for text in read.values())


def test_every_command_that_compiles_takes_it_and_knows_the_values(call: Call) -> None:
    for command in ("compile", "run", "explain", "tune"):
        done = call(command, GESTURE, "--favour", "sped")
        assert done.status == 2
        assert done.complaint == (
            "Invalid value for '--favour': 'sped' is not one of 'balanced', 'speed', 'size', 'ram'; "
            f"see 'uaccel {command} --help'"
        )


def test_a_project_was_compiled_already(tmp_path: Path, call: Call) -> None:
    complaint = call("run", tmp_path, "--favour", "size").complaint
    assert complaint == "--favour is for a model file, and MODEL is a folder; leave it away"


def test_python_programs_say_it_in_a_word() -> None:
    job = Job.of(GESTURE, favour="ram")
    assert job.command() == f"uaccel compile {GESTURE} --board host --favour ram"
    assert job.compiled().program.favour == job.favour
    assert "--favour" not in Job.of(GESTURE, favour="balanced").command()
    with pytest.raises(UaccelError) as refused:
        Job.of(GESTURE, favour="sped")
    assert str(refused.value) == "favour 'sped' is unknown; wanted balanced, speed, size or ram"
