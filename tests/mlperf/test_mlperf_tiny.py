"""Firmware that speaks MLPerf Tiny's serial protocol, driven as its runner drives a device."""

from __future__ import annotations

import os
import re
import select
import subprocess
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN, network_named
from support.oracle.oracle import Array, Tflm, random_inputs
from support.run.command import Call, call_in
from support.run.mlperf_runner import Runner, printed
from uaccel.build.project_api import IoTimeoutError, ProjectServer
from uaccel.cli import app

GESTURE = OWN / "gesture.tflite"
NAMES = {"ad": "ad01", "ic": "ic01", "kws": "kws01", "vww": "vww01", "sww": "sww01"}
"""The benchmark's models, by the names of their files."""
IMAGES = ("ic01", "vww01")


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return call_in(capfd)


def project_of(model: Path, board: str, folder: Path, call: Call, *options: str) -> Path:
    if board != "host":
        board_with_tools(board)
    for words in (
        ("compile", model, "-b", board, *options, "-o", folder / "m.tar"),
        ("create", folder / "m.tar", folder / "p", "--protocol", "mlperf-tiny"),
        ("build", folder / "p"),
    ):
        done = call(*words)
        assert done.status == 0, done.err
    return folder / "p"


@contextmanager
def running(project: Path) -> Iterator[Runner]:
    """Through the Project API: a process of this computer, or an emulator's console."""
    with ProjectServer(project) as server:

        def read() -> bytes:
            try:
                return server.read_transport(4096, 1.0)
            except IoTimeoutError:
                return b""

        server.open_transport()
        yield Runner(read, lambda data: server.write_transport(data, 10.0))


def data_for(model: str, values: Array) -> bytes:
    """What the benchmark's runner would send, so that the model gets these values."""
    return (values.view(np.uint8) ^ 0x80).tobytes() if model in IMAGES else values.tobytes()


def probabilities(network: Tflm, values: Array) -> list[float]:
    (output,) = network.run([values])
    return printed([(int(element) + 128) / 256 for element in output.reshape(-1)])


@pytest.mark.parametrize("board", ["host", pytest.param("mps2_an386", marks=pytest.mark.slow)])
def test_performance_and_accuracy_of_a_network(board: str, tmp_path: Path, call: Call) -> None:
    project, network = project_of(GESTURE, board, tmp_path, call), Tflm(GESTURE.read_bytes())
    with running(project) as runner:
        boot = runner.boot()
        assert [boot[0], *boot[2:]] == ["m-timestamp-mode-performance", "m-init-done", "m-ready"]
        assert (runner.name(), runner.model()) == ("uaccel", "gesture")
        for (values,) in random_inputs(GESTURE.read_bytes(), 6, 5):  # accuracy mode
            assert "m-load-done" in runner.load(values.tobytes())
            assert runner.infer(1, 0).results == probabilities(network, values)
        once, often = (runner.infer(count, 3) for count in (1, 200))  # performance mode
        assert once.results == often.results == probabilities(network, values)
        assert often.microseconds > 0


@pytest.mark.long
@pytest.mark.parametrize("board", ["host", "mps2_an386"])
@pytest.mark.parametrize("name", NAMES)
def test_the_benchmarks_networks(name: str, board: str, tmp_path: Path, call: Call) -> None:
    path = network_named(name).path
    project, network, model = project_of(path, board, tmp_path, call), Tflm(path.read_bytes()), NAMES[name]
    with running(project) as runner:
        runner.boot()
        assert runner.model() == model
        if name == "ad":
            for seed in range(2):
                values = np.random.default_rng(seed).normal(0, 10, 640).astype(np.float32)
                runner.load(values.tobytes())
                assert runner.infer(1, 0).results == pytest.approx([error(network, values)], abs=2e-3)
            return
        for (values,) in random_inputs(path.read_bytes(), 6, 2):
            runner.load(data_for(model, values))
            assert runner.infer(1, 0).results == probabilities(network, values)
        assert runner.infer(2, 1).results == probabilities(network, values)


def error(network: Tflm, values: Array) -> float:
    """Of the autoencoder, between what went in and what came out."""
    scale, zero = np.float32(0.3910152316093445), 89
    given = np.clip(np.sign(values) * np.floor(np.abs(values / scale) + np.float32(0.5)) + zero, -128, 127)
    (output,) = network.run([given.astype(np.int8).reshape(1, 640)])
    real = (output.reshape(-1).astype(np.float64) - 96) * np.float32(0.36449846625328064)
    return float(np.mean((real - values) ** 2))


@pytest.mark.slow
def test_with_an_accelerator(tmp_path: Path, call: Call) -> None:
    project, network = project_of(GESTURE, "host", tmp_path, call, "-a", "nuc_fpga"), Tflm(GESTURE.read_bytes())
    with running(project) as runner:
        runner.boot()
        for (values,) in random_inputs(GESTURE.read_bytes(), 7, 2):
            runner.load(values.tobytes())
            assert runner.infer(3, 1).results == probabilities(network, values)


def test_at_a_terminal(gesture: Path) -> None:
    """As the benchmark's runner has it: a serial port by its name."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    with subprocess.Popen([gesture / "build" / "firmware"], stdin=theirs, stdout=theirs) as process:
        os.close(theirs)

        def read() -> bytes:
            return os.read(ours, 1) if select.select([ours], [], [], 0.1)[0] else b""

        runner = Runner(read, lambda data: os.write(ours, data))
        runner.boot()
        assert runner.name() == "uaccel"
        assert len(runner.load(bytes(96))) == 2
        assert len(runner.infer(2, 0).results) == 6
        os.close(ours)
        assert process.wait(10) in (0, 2)


def test_a_session_says_that_there_is_none(gesture: Path, call: Call) -> None:
    assert call("run", gesture).complaint == (
        f"{gesture} speaks MLPerf Tiny's protocol and serves no session; "
        "make another project without --protocol, or let the benchmark's runner drive it"
    )


def test_what_is_not_for_the_benchmark(tmp_path: Path, call: Call) -> None:
    done = call("compile", OWN / "branches.tflite", "-o", tmp_path / "m.tar")
    done = call("create", tmp_path / "m.tar", tmp_path / "p", "--protocol", "mlperf-tiny")
    assert done.complaint == (
        "--protocol mlperf-tiny is for models of one input and one output, not 2 and 3; leave it away"
    )
    assert not (tmp_path / "p").exists()


PIN = """\
#include <stdio.h>
#include "uaccel_mlperf_tiny.h"

void uaccel_mlperf_tiny_pin(unsigned high)
{
    FILE *const log = fopen("%s", "a");
    fputc(high ? '1' : '0', log);
    fclose(log);
}
"""


def test_energy_mode_moves_a_pin_where_others_tell_a_time(tmp_path: Path, call: Call) -> None:
    log, network = tmp_path / "log", Tflm(GESTURE.read_bytes())
    (tmp_path / "pin.c").write_text(PIN % log)
    assert call("compile", GESTURE, "-o", tmp_path / "m.tar").status == 0
    made = ("create", tmp_path / "m.tar", tmp_path / "p", "--energy-pin")
    assert call(*made, tmp_path / "pin.c").complaint == (
        "--energy-pin is for MLPerf Tiny's energy mode; give --protocol mlperf-tiny, or leave it away"
    )
    protocol = ("--protocol", "mlperf-tiny")
    none = tmp_path / "none.c"
    assert call(*made, none, *protocol).complaint == f"cannot read --energy-pin {none}: No such file or directory"
    assert call(*made, tmp_path / "pin.c", *protocol).status == 0
    assert call("build", tmp_path / "p").status == 0
    with running(tmp_path / "p") as runner:
        assert runner.boot() == ["m-timestamp-mode-energy", "m-init-done", "m-ready"]
        assert log.read_text() == "01"
        (values,) = random_inputs(GESTURE.read_bytes(), 6, 1)[0]
        runner.load(values.tobytes())
        words = [line.partition("[")[0] for line in runner.command("infer 5 2")]
        told = ["m-warmup-start-2", "m-warmup-done", "m-infer-start-5", "m-infer-done", "m-results-", "m-ready"]
        assert words == told
        assert log.read_text() == "01" + "0101"
        assert runner.command("timestamp") == ["m-ready"]
        assert log.read_text() == "01" + "0101" + "01"
        assert (
            runner.command("results")[0]
            == f"m-results-[{','.join(f'{p:.3f}' for p in probabilities(network, values))}]"
        )


@pytest.fixture(scope="module")
def gesture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project on this computer."""
    folder = tmp_path_factory.mktemp("mlperf")
    for words in (
        ["compile", str(GESTURE), "-o", f"{folder}/m.tar"],
        ["create", f"{folder}/m.tar", f"{folder}/p", "--protocol", "mlperf-tiny"],
        ["build", f"{folder}/p"],
    ):
        assert app.main(words) == 0
    return folder / "p"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("timestamp", r"m-lap-us-\d+"),
        ("db load 4", r"m-\[Expecting 4 bytes\]"),
        ("db load 97", r"e-\[Supplied buffer size 97 exceeds maximum of 96\]"),
        ("db load 0", r"e-\[Command 'db load' must be >0 bytes\]"),
        ("db load", r"e-\[Command 'db load' requires the # of bytes\]"),
        ("db", r"e-\[Command 'db' requires a subcommand\]"),
        ("db 0", r"e-\[Insufficent number of hex digits\]"),
        ("db 0g", r"e-\[Invalid hex digit '0g'\]"),
        ("db g0", r"e-\[Invalid hex digit 'g0'\]"),
        ("infer 0", r"e-\[Inference iterations must be >0\]"),
        ("infer 1 -1", r"e-\[Inference warmup must be >=0\]"),
        ("infer 1 0", r"e-\[Input has 0 bytes, wanted 96\]"),
        ("sing", r"e-\[Unknown command: sing\]"),
        ("", r"e-\[Unknown command: \]"),
        ("x" * 200, rf"e-\[Unknown command: {'x' * 80}\]"),
    ],
)
def test_each_command_is_answered(command: str, answer: str, gesture: Path) -> None:
    with running(gesture) as runner:
        runner.boot()
        if command.startswith(("db 0", "db g")):
            runner.command("db load 4")
        line, *rest = runner.command(command)
        assert re.fullmatch(answer, line), line
        assert rest == ["m-ready"]
        assert runner.command("timestamp")[1:] == ["m-ready"]
