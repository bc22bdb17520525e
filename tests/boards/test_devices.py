"""Models of devices behind every board: one driver, one model, the same bytes and cycles, the same failures."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from support.device.adder_project import ACCELERATORS, build_chain, chain_files, run_chain
from support.device.boards import board_with_tools
from uaccel.board import Board, load_board
from uaccel.build.archive_reader import DeviceModel, project_devices
from uaccel.build.programs import FoundProgram, find_command
from uaccel.build.project import create_project
from uaccel.errors import DeviceError, LayerError, ToolError
from uaccel.runner.options import ProjectRunOptions
from uaccel.runner.project_run import perform_project
from uaccel.runner.request import Quiet
from uaccel.session.device_models import device_plugin
from uaccel.session.message import CODES
from uaccel.session.qemu import EmulatedBoard
from uaccel.session.session import Result, Session

EMULATED = ("mps2_an386", "mps2_an500", "mps3_an547", "qemu_riscv32")
PLACES = ("host", *EMULATED)
POISON, VENOM = 77, 78
WAVE = np.arange(1000).astype(np.int8)
TABLE = np.array([10, 20, 30, *[0] * 36, -128], np.int8)
CYCLES = (1000 + 12, 1000 + 12, 40 + 12)
"""Of each layer: a cycle a byte, and some for every job."""
PATIENCE = 20.0
"""Seconds that a run with a failing device may take, on a busy computer."""

each_place = pytest.mark.parametrize("name", PLACES)


def there(name: str) -> Board:
    """A board that this computer can run."""
    return load_board(name) if name == "host" else board_with_tools(name)


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    @cache
    def build(name: str) -> Path:
        return build_chain(there(name), tmp_path_factory.mktemp(name) / "project")

    return build


@pytest.fixture
def ram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where files for boards' memories are made."""
    folder = tmp_path / "r,m"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def infer(session: Session) -> Result:
    (result,) = session.stream([{"wave": WAVE}])
    np.testing.assert_array_equal(result.outputs["sum"], (WAVE - 1).astype(np.int8))
    np.testing.assert_array_equal(result.outputs["known"], (TABLE + 1).astype(np.int8))
    return result


@pytest.mark.slow
@each_place
def test_the_same_bytes_calls_and_cycles_everywhere(name: str, firmware: Callable[[str], Path], ram: Path) -> None:
    counted = set()
    for _ in range(2):
        with run_chain(load_board(name), firmware(name)) as session:
            assert not list(ram.iterdir()), "QEMU has opened it, and it is gone"
            results = [infer(session) for _ in range(3)]
            accounts = session.accounts()
        counted |= {result.instructions for result in results}
        assert {(result.calls, result.cycles) for result in results} == {(3, sum(CYCLES))}
        assert [(accounts[layer].calls, accounts[layer].cycles) for layer in range(3)] == [(1, c) for c in CYCLES]
    assert len(counted) == 1, "the same work takes the same instructions, the first time too"
    assert (counted == {None}) == (name == "host")


Failure = tuple[int, int, str]
"""Layer, code, reason."""
HANGS = "the device did not finish: register 0x0000000c stays at 0x00000000"
NEVER_THERE = "the device does not answer: register 0x00000000 reads 0xffffffff"
GONE = "the device does not answer: register 0x0000000c reads 0xffffffff"
ANOTHER_VERSION = "another version: register 0x00000004 is 0x00020000, wanted 0x00010000"
FAULTS: dict[str, tuple[Failure, Failure]] = {
    "adder:hang": ((0, 1, HANGS), (0, 1, HANGS)),
    "adder:hang@2": ((1, 1, HANGS), (0, 1, HANGS)),
    "adder:error@3": ((2, 2, CODES[2]), (0, 2, CODES[2])),
    "adder:vanish": ((0, 3, NEVER_THERE), (0, 3, NEVER_THERE)),
    "adder:vanish@2": ((1, 3, GONE), (0, 3, NEVER_THERE)),
    "adder:version": ((0, 5, ANOTHER_VERSION), (0, 5, ANOTHER_VERSION)),
    "adder:dma@200": ((1, 6, CODES[6]), (0, 6, CODES[6])),
    "swapper:vanish": ((2, 3, NEVER_THERE), (2, 3, NEVER_THERE)),
}
"""What becomes of a first run, and of a second one: faults stay."""
LAYERS = ("up", "down", "table")


@pytest.mark.sample(1)
@pytest.mark.parametrize("fault", FAULTS)
@each_place
def test_a_fault_ends_the_run_with_its_layer_its_code_and_a_reason(
    name: str, fault: str, firmware: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UACCEL_DEVICE_FAULT", fault)
    with run_chain(load_board(name), firmware(name)) as session:
        begin = time.monotonic()
        for layer, code, reason in FAULTS[fault]:
            with pytest.raises(LayerError) as caught:
                list(session.stream([{"wave": WAVE}]))
            assert (caught.value.layer, caught.value.code) == (layer, code)
            assert f": layer {layer} ({LAYERS[layer]}): adder: {reason} (error {code})" in str(caught.value)
        assert time.monotonic() - begin < PATIENCE


@pytest.mark.parametrize("name", ["host", "mps2_an386"])
def test_a_fault_that_cannot_be_is_refused(
    name: str, firmware: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, ram: Path
) -> None:
    monkeypatch.setenv("UACCEL_DEVICE_FAULT", "adder:sleep")
    wanted = "UACCEL_DEVICE_FAULT is 'adder:sleep': KIND is none of hang, error, vanish, dma and version"
    with pytest.raises(DeviceError) as caught, run_chain(load_board(name), firmware(name)) as session:
        infer(session)
    assert wanted in str(caught.value)
    assert not list(ram.iterdir()), "QEMU never opened it"


def test_what_devices_do_is_written_down(
    firmware: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = {}
    for name in ("host", "mps2_an386"):
        traces[name] = tmp_path / name
        monkeypatch.setenv("UACCEL_DEVICE_TRACE", str(traces[name]))
        with run_chain(load_board(name), firmware(name)) as session:
            infer(session)
    host, emulated = (traces[name].read_text().splitlines() for name in traces)
    assert host[:3] == [
        "adder read 0x0000 = 0x41444452",
        "adder read 0x0004 = 0x00010000",
        "adder read 0x0020 = 0x00000000",
    ]
    assert re.fullmatch(r"adder load 0x[0-9a-f]{8} 16 bytes", host[8])
    assert "swapper write 0x0000 = 0x00010000" in host
    assert [line.split()[:2] for line in host] == [line.split()[:2] for line in emulated]


@each_place
def test_devices_start_anew_with_the_firmware(
    name: str, firmware: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UACCEL_DEVICE_FAULT", "adder:hang@4")
    with run_chain(load_board(name), firmware(name)) as session:
        for _ in range(2):
            infer(session)
            session.reset()
        infer(session)
        with pytest.raises(LayerError):
            infer(session)


def test_a_board_on_the_bench_has_its_devices_too(firmware: Callable[[str], Path], ram: Path) -> None:
    name = "mps2_an386"
    devices = project_devices(firmware(name).parent.parent)
    with EmulatedBoard(load_board(name), firmware(name), devices=devices) as board:
        with Session.open(board.port) as session:
            assert infer(session).cycles == sum(CYCLES)
        assert not list(ram.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["host", "qemu_riscv32"])
def test_a_project_runs_with_its_devices(name: str, tmp_path: Path, ram: Path) -> None:
    create_project(chain_files(), there(name), tmp_path / "project")
    np.savez(tmp_path / "two.npz", wave=np.stack([WAVE, WAVE]))
    wishes = ProjectRunOptions(tmp_path / "two.npz", profile=True)
    done = perform_project(tmp_path / "project", wishes, Quiet()).measured
    assert [done.run.cycles, *(account.cycles for account in done.run.accounts.values())] == [sum(CYCLES), *CYCLES]
    assert [time.layer for time in done.layers] == [0, 1, 2]
    assert not list(ram.iterdir())
    assert done.footprint is not None
    assert 300 < done.footprint.code < 5000, "the driver is in it, and the way to the device"
    assert 0 <= done.footprint.static < 500, "the arena is not in it"
    assert 2000 < done.footprint.session.ram < 60_000


@each_place
def test_memory_that_the_device_does_not_reach_stays_as_it_is(name: str, firmware: Callable[[str], Path]) -> None:
    with run_chain(load_board(name), firmware(name)) as session:
        for value in (POISON, VENOM):
            poisoned = WAVE.copy()
            poisoned[:2] = value
            with pytest.raises(LayerError, match=rf": layer 1 \(down\): adder: {CODES[6]} \(error 6\)$"):
                session.run({"wave": poisoned})
            infer(session)


def test_a_qemu_that_takes_no_plugins_is_said_to_be_one(tmp_path: Path) -> None:
    program = tmp_path / "qemu-system-arm"
    program.write_text("#!/bin/sh\necho '-machine'\n")
    program.chmod(0o755)
    with pytest.raises(ToolError) as caught:
        device_plugin([DeviceModel("adder", ACCELERATORS[0] / "device")], FoundProgram((str(program),), (9, 0)))
    assert str(caught.value) == (
        f"{program} was built without support for plugins; run the model on board host, or install a QEMU with them"
    )


def test_a_model_that_does_not_compile_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    board_with_tools("mps2_an386")
    (tmp_path / "broken_device.c").write_text("int broken(void) { return 1 }\n")
    qemu = find_command("qemu-system-arm", "a test")
    with pytest.raises(ToolError) as caught:
        device_plugin([DeviceModel("broken", tmp_path)], qemu)
    words = r"building the plugin that runs the model of broken failed \(.*\): .*broken_device.c:1:.* error: .*"
    assert re.fullmatch(words, str(caught.value))
    assert not list((tmp_path / "cache" / "uaccel").iterdir())


def test_a_model_that_lacks_its_structure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    board_with_tools("mps2_an386")
    (tmp_path / "empty_device.c").write_text("extern int empty;\nint empty;\n")
    qemu = find_command("qemu-system-arm", "a test")
    with pytest.raises(ToolError, match=r"model of empty failed .*undefined reference to .empty_device"):
        device_plugin([DeviceModel("empty", tmp_path)], qemu)


@pytest.mark.slow
def test_the_plugin_is_built_anew_for_another_model_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    board_with_tools("mps2_an386")
    qemu = find_command("qemu-system-arm", "a test")
    folder = tmp_path / "device"
    shutil.copytree(ACCELERATORS[0] / "device", folder)
    first = device_plugin([DeviceModel("adder", folder)], qemu)
    made = first.stat().st_mtime_ns
    assert device_plugin([DeviceModel("adder", folder)], qemu) == first
    assert first.stat().st_mtime_ns == made
    source = folder / "model" / "adder_device.c"
    source.write_text(source.read_text() + "\n/* changed */\n")
    assert device_plugin([DeviceModel("adder", folder)], qemu) != first
