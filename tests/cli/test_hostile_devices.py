"""What a user sees of a board that misbehaves: one line, and status 4."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.device.scripted import Device, Misbehave, When, behind_tcp
from support.hostile.misbehaviour import DESCRIBE, HELLO, RUN, data_at, describes, packets
from support.models.networks import OWN
from support.run.command import Call
from uaccel.cli import app
from uaccel.runner import project_run
from uaccel.session.link import Timeouts
from uaccel.session.protocol_ids import Type

GESTURE = OWN / "gesture.tflite"
SHORT = Timeouts(answer=0.1, silence=1.0, run=0.5, operation=2.0)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    assert app.main(["compile", str(GESTURE), "-o", str(folder / "g.tar")]) == 0
    assert app.main(["create", str(folder / "g.tar"), str(folder / "project"), "-b", "netduino_plus_2"]) == 0
    return folder / "project"


def sincere(project: Path) -> Device:
    """What says of itself what the project's firmware would."""
    own = json.loads((project / "model" / "metadata.json").read_text())["uaccel"]
    inputs, outputs = ([{"name": name, **row} for name, row in own[side].items()] for side in ("inputs", "outputs"))
    text = json.dumps({"model": "gesture", "inputs": inputs, "outputs": outputs, "layers": own["layers"]})
    hashes = {"model_hash": bytes.fromhex(own["model"]["sha256"]), "build": bytes.fromhex(own["build"])}
    sizes = {"layers": len(own["layers"]), "input_bytes": 96, "output_bytes": 6}
    return Device(text.encode(), hello=hashes | sizes, inputs=bytearray(96))


@pytest.fixture
def complaint(project: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What the command says of a board that misbehaves so, without the board's name."""
    monkeypatch.setattr(project_run, "TIMEOUTS", SHORT)

    def run(device: Device, when: When, misbehave: Misbehave) -> str:
        begun = time.monotonic()
        with behind_tcp(device, when, misbehave) as port:
            done = call("run", project, "--port", port, "--json")
        assert (done.status, done.report["error"]["status"]) == (4, 4)
        assert time.monotonic() - begun < 30
        return done.complaint.removeprefix(f"project {project} ").removeprefix(f"project {project}: ")

    return run


def test_a_board_that_floods(project: Path, complaint: Callable[..., str]) -> None:
    said = complaint(sincere(project), DESCRIBE, packets(data_at(lambda number: number * 64)))
    assert re.fullmatch(r'stopped answering: nothing on "describe the model" for \d\.\d s', said), said


def test_a_board_that_gives_itself_out_for_the_model(project: Path, complaint: Callable[..., str]) -> None:
    """Its outputs would be of a shape that nothing here expects."""
    device = sincere(project)
    told = json.loads(device.description)
    told["outputs"][0]["shape"] = [2, 3]
    said = complaint(device, HELLO, describes(json.dumps(told).encode(), **device.hello))
    assert said == "describes scripted otherwise than it was compiled: build and flash its firmware anew"


def test_a_board_that_runs_for_ever(project: Path, complaint: Callable[..., str]) -> None:
    said = complaint(sincere(project), RUN, packets(data_at(lambda number: 0, b""), first=[Type.STARTED]))
    assert said == '"run" did not finish within 0.5 s: allow more time, or reset the board if it hangs'
