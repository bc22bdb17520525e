"""No host brings firmware down: each misbehaviour under sanitizers, and behind it a session with the right tensors."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.device.device import include_flags, known_inputs, known_outputs, runtime_sources
from support.hostile.hostile_hosts import HELLO, HOSTS, TOKEN, HostCase, asks
from support.models.networks import OWN
from uaccel.build.project import build_project, create_project, firmware_of
from uaccel.errors import DeviceError
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of
from uaccel.session.connect import ProcessTransport
from uaccel.session.protocol_ids import FROM_DEVICE, Type
from uaccel.session.qemu import QemuTransport
from uaccel.session.session import Session
from uaccel.session.transport import Decoder, Packet, StreamTransport, encode
from uaccel.util.files import data_dir

SUPPORT = Path(__file__).resolve().parents[1] / "support"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror", "-g", "-O1", "-DUACCEL_OBSERVE")
SECONDS = 20
"""That a case may take; here it takes a tenth of one."""
MEGABYTES = 300
INPUTS = known_inputs(5)


def build(folder: Path, runtime: list[Path]) -> Path:
    program, port = folder / "firmware", data_dir("firmware") / "ports" / "host"
    sources = [*runtime, *sorted(port.glob("*.c")), SUPPORT / "device" / "process.c"]
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    include = [*include_flags(), f"-I{data_dir('firmware') / 'runtime'}", f"-I{port}"]
    command = ["gcc", *STRICT, *sanitize, *include, *map(str, sources), "-o", str(program), "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot find" in done.stderr:
        pytest.skip("gcc has no sanitizers here")
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("sanitized"), runtime_sources())


def answers(line: StreamTransport, case: HostCase) -> list[Packet]:
    """What the firmware says meanwhile: sound frames, and no more than it was asked for."""
    decoder, packets, end = Decoder(), list[Packet](), time.monotonic() + SECONDS
    for data in case.data():
        line.write(data)
    greeting = b"\0" + encode(asks(Type.HELLO, HELLO, 0, TOKEN + 99))
    line.write(greeting)
    while not any(packet.type == Type.HELLO_REPLY and packet.token == TOKEN + 99 for packet in packets):
        assert time.monotonic() < end, "it answers no more"
        data = line.read(0.3)
        if not data:  # a reset forgets what waits
            line.write(greeting)
        for packet in decoder.feed(data):
            assert packet is not None, "a damaged frame came"
            packets.append(packet)
    assert all(packet.type >= FROM_DEVICE for packet in packets)
    return packets


def memory_of(pid: int) -> int:
    """Megabytes at most."""
    status = Path(f"/proc/{pid}/status")
    match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return int(match[1]) >> 10 if match else 0


def outlived_by(program: Path, case: HostCase) -> set[int]:
    """The types of what it answered; a session behind it must get the right tensors."""
    begun, line = time.monotonic(), ProcessTransport([str(program)])
    try:
        kinds = {packet.type for packet in answers(line, case)}
        with Session(line) as session:
            for name, got in session.run(INPUTS).items():
                np.testing.assert_array_equal(got, known_outputs(INPUTS)[name])
            assert memory_of(line.pid) < MEGABYTES
    finally:
        line.close()
    assert time.monotonic() - begun < SECONDS
    return kinds


@pytest.mark.parametrize("case", HOSTS, ids=str)
def test_a_hostile_host(case: HostCase, sanitized: Path) -> None:
    assert set(case.answers) <= outlived_by(sanitized, case)


@pytest.mark.parametrize("mends", [True, False], ids=["reads on", "leaves"])
def test_a_host_that_reads_nothing(mends: bool, sanitized: Path) -> None:
    """The firmware waits where its line is full; it goes on with the line, or ends with it."""
    line = ProcessTransport([str(sanitized)])
    for number in range(1, 3000):
        line._process.stdin.write(encode(asks(Type.HELLO, HELLO, 0, number)))  # type: ignore[union-attr]
    line._process.stdin.flush()  # type: ignore[union-attr]
    if mends:
        with Session(line) as session:
            np.testing.assert_array_equal(session.run(INPUTS)["sums"], known_outputs(INPUTS)["sums"])
    else:
        line.close()
    assert line._process.wait(5) is not None


@pytest.mark.parametrize("end", ["stdin", "stdout"])
def test_half_of_a_line_that_closes(end: str, sanitized: Path) -> None:
    """The firmware ends by itself."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sanitized], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        getattr(process, end).close()
        if end == "stdout" and process.stdin is not None:
            for number in range(1, 50):
                try:
                    process.stdin.write(b"\0" + encode(asks(Type.HELLO, HELLO, 0, number)))
                    process.stdin.flush()
                except BrokenPipeError:
                    break
        assert process.wait(SECONDS) is not None
        assert process.stderr is not None
        assert b"Sanitizer" not in process.stderr.read()


@pytest.mark.slow
def test_a_hole_would_be_found(tmp_path: Path) -> None:
    """Firmware whose reader takes frames that are longer than its memory for them."""
    text = (data_dir("firmware") / "runtime" / "uaccel_frame.c").read_text()
    check = "reader->used < sizeof reader->packet"
    assert check in text
    broken = tmp_path / "uaccel_frame.c"
    broken.write_text(text.replace(check, check.replace("sizeof", "4 * sizeof")))
    program = build(tmp_path, [broken if path.name == broken.name else path for path in runtime_sources()])
    (case,) = (case for case in HOSTS if case.name == "a frame that never ends")
    with pytest.raises(DeviceError, match=r"Sanitizer|runtime error"):
        outlived_by(program, case)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mps2_an386", "qemu_riscv32"])
def test_hostile_hosts_of_an_emulated_board(name: str, tmp_path: Path) -> None:
    """One after the other, without a restart between them."""
    board = board_with_tools(name)
    create_project(archive_of(compile_model(OWN / "gesture.tflite", board=name)), board, tmp_path / "project")
    line = QemuTransport(board, firmware_of(build_project(tmp_path / "project", observe=True)))
    wanted = None
    for case in HOSTS:
        begun = time.monotonic()
        assert answers(line, case), case.name
        session = Session(line)
        inputs = {tensor.name: tensor.unpack(b"\x11" * tensor.size) for tensor in session.model.inputs}
        (got,) = session.run(inputs).values()
        wanted = got if wanted is None else wanted
        np.testing.assert_array_equal(got, wanted)
        assert time.monotonic() - begun < SECONDS, case.name
    line.close()
