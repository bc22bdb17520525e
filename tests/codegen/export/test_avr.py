"""Exports on an 8-bit CPU, where ``int`` has 16 bits: bit-exact, by a console and in a session over the UART."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from codegen.export.avr import avr_process, linked, printed
from codegen.export.exports import NONE_DIFFER, export_of, need_program, written
from support.models.networks import OWN
from support.oracle.oracle import Tflm, random_inputs
from support.run.mlperf_runner import Runner
from support.run.mlperf_runner import printed as printed_numbers
from uaccel.pipeline import compile_model
from uaccel.runner.verify import Reference
from uaccel.session.session import Session

BUILDER = (
    *("arduino-builder", "-compile", "-hardware", "/usr/share/arduino/hardware"),
    *("-hardware", "/usr/share/arduino-builder", "-tools", "/usr/bin", "-fqbn", "arduino:avr:mega:cpu=atmega2560"),
    *("-prefs", "compiler.cpp.extra_flags=-DDECIMAL_DIG=10", "-warnings", "all"),
)


def sketch(folder: Path, name: str) -> Path:
    """A sketch of the exported library, built by Arduino's own builder with the core; no warning is about our files."""
    need_program("arduino-builder", "avr-g++")
    build = folder.parent / f"build_{name}"
    build.mkdir()
    command = [*BUILDER, "-libraries", str(folder.parent), "-build-path", str(build)]
    command.append(str(folder / f"examples/{name}/{name}.ino"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "warning:" in line and "/cores/arduino/" not in line]
    assert told == []
    return build / f"{name}.ino.elf"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "model", ["gesture", pytest.param("int16", marks=pytest.mark.slow), "mixed", "stream", "branches"]
)
def test_the_flat_export_is_exact(model: str, tmp_path: Path) -> None:
    avr_process()
    assert NONE_DIFFER in printed(linked(written(tmp_path, "c", model)))


def test_a_sketch_prints_what_the_model_means(tmp_path: Path) -> None:
    program = avr_process()
    firmware = sketch(written(tmp_path, "arduino"), "Inference")
    running = subprocess.Popen([program, firmware, "console"], stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    with running:
        lines = [running.stdout.readline() for _ in range(2)]
        running.kill()
    assert "softmax_1: element" in lines[0]
    assert NONE_DIFFER in lines[1]


def test_a_session_over_serial_is_exact(tmp_path: Path) -> None:
    program = avr_process()
    firmware = sketch(written(tmp_path, "arduino"), "Session")
    samples = np.load(OWN / "gesture_samples.npz")["motion"]
    reference = Reference.of(compile_model(OWN / "gesture.tflite", board="host"))
    with Session.start([str(program), str(firmware)]) as device:
        assert (device.model.name, device.model.ticks_per_second) == ("gesture", 1_000_000)
        for sample in samples:
            (wanted,), _ = reference.run([sample[None]])
            assert np.array_equal(device.run({"motion": sample[None]})["softmax_1"], wanted)
        timed = next(iter(device.stream([{"motion": samples[:1]}])))
        assert timed.seconds is not None
        assert 0.02 < timed.seconds < 0.5  # at 16 MHz
        assert 60 <= timed.stack < 4000
        device.reset()
        assert np.array_equal(device.run({"motion": samples[:1]})["softmax_1"], timed.outputs["softmax_1"])


@pytest.mark.slow
def test_the_benchmarks_protocol_over_serial(tmp_path: Path) -> None:
    """MLPerf Tiny's, at 115200 baud, on a CPU of 16 MHz."""
    firmware = sketch(written(tmp_path, "arduino"), "MLPerfTiny")
    model = OWN / "gesture.tflite"
    with subprocess.Popen([avr_process(), firmware], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as device:
        assert device.stdin is not None
        assert device.stdout is not None
        line, stdin = device.stdout.fileno(), device.stdin
        runner = Runner(lambda: os.read(line, 4096), lambda data: (stdin.write(data), stdin.flush()))
        runner.boot()
        assert (runner.name(), runner.model()) == ("uaccel", "gesture")
        for (values,) in random_inputs(model.read_bytes(), 6, 2):
            runner.load(values.tobytes())
            (output,) = Tflm(model.read_bytes()).run([values])
            wanted = printed_numbers([(int(element) + 128) / 256 for element in output.reshape(-1)])
            found = runner.infer(2, 0)
            assert found.results == wanted
            assert 40_000 < found.microseconds < 1_000_000
        device.kill()


def test_a_wrong_result_is_seen(tmp_path: Path) -> None:
    """A shift that int of 16 bits loses: what kernels must not do."""
    avr_process()
    folder = written(tmp_path, "c")
    header = folder / "uaccel_fixedpoint.h"
    text = header.read_text()
    header.write_text(text.replace("__builtin_clzl(x)", "__builtin_clz((unsigned)x)"))
    assert header.read_text() != text
    assert NONE_DIFFER not in printed(linked(folder))
    assert export_of().generated.weight_bytes < 8192
