"""Rows on the workers of a scheduler: the same results as on this computer, whatever becomes of workers and boards."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from serial.tools import list_ports
from serial.tools.list_ports_common import ListPortInfo

from runner.sweep.farm import Lab, children, command, lab, soon
from runner.sweep.farm_jobs import act
from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.models.onnx_rows import onnx_with_weights_beside
from support.run.command import process
from support.run.rows import alike, lines
from uaccel.errors import InputError, UaccelError
from uaccel.frontend import import_model
from uaccel.runner.sweep import scheduler as connect
from uaccel.runner.sweep.answer import substitute_paths
from uaccel.runner.sweep.farm import Farm, Item, WorkerCapacity, found_boards, stated_boards
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.sweep.options import PoolLimits
from uaccel.runner.sweep.pool import PoolOutcome
from uaccel.runner.sweep.scheduler import exposure, listening_at
from uaccel.runner.sweep.worker import Packer, Parcel, unpack
from uaccel.session.emulated_board import Desk

pytest.importorskip("distributed", reason="Dask is not installed: pip install 'uaccel[farm]'")

MATRIX = """
models = ["gesture.tflite"]
boards = ["host"]
accelerators = ["./own"]
[run]
samples = 2
"""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("farm")) as made:
        made.hire("one", "--jobs", "1")
        made.hire("two", "--jobs", "1")
        yield made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix with an accelerator of the user's own."""
    from uaccel.util.files import data_dir

    folder = tmp_path_factory.mktemp("matrix")
    shutil.copy(OWN / "gesture.tflite", folder)
    shutil.copytree(data_dir("accelerators") / "matrix8", folder / "own")
    (folder / "m.toml").write_text(MATRIX)
    return folder


def rows(count: int, **tags: Any) -> list[Item]:
    """Synthetic ones, of one small model."""
    model = str(OWN / "gesture.tflite")
    return [
        (f"d{number}", SweepRow(model, "host", tags={"number": number, **tags}).to_json()) for number in range(count)
    ]


def outcomes(address: str, items: list[Item], **options: Any) -> list[PoolOutcome]:
    with Farm(address, function=act, **options) as workers:
        return sorted(workers.run(items), key=lambda outcome: items.index(outcome.item))


@pytest.mark.slow
def test_results_are_those_of_the_local_pool(farm: Lab, folder: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    assert process("sweep", folder / "m.toml", "-o", here).status == 0
    done = process("sweep", folder / "m.toml", "-o", there, "--scheduler", farm.address, "--json")
    assert (done.status, done.report["counts"]) == (0, {"right": 1})
    assert alike(lines(there)) == alike(lines(here))
    assert {result["worker"] for result in lines(there)} <= {"one", "two"}
    again = process("sweep", folder / "m.toml", "-o", here, "--scheduler", farm.address, "--json")
    assert (again.status, again.report["taken_over"]) == (0, 1)


@pytest.mark.slow
def test_a_thousand_jobs_take_under_20_ms_each(farm: Lab) -> None:
    outcomes(farm.address, rows(2))  # processes that are warm
    begun = time.monotonic()
    found = outcomes(farm.address, rows(1000))
    each = (time.monotonic() - begun) / 1000
    assert [outcome.result["number"] for outcome in found] == list(range(1000))
    assert each < 0.02, f"{1000 * each:.1f} ms"


def test_a_killed_worker_loses_nothing(farm: Lab, tmp_path: Path) -> None:
    """What had ended there, and was not fetched yet, ends a second time elsewhere; nothing else does."""
    third = farm.hire("third", "--jobs", "1")
    items = rows(24, folder=str(tmp_path), seconds=0.1)

    def begun_there() -> bool:
        marks = [path for path in tmp_path.glob("*.begun") if not path.with_suffix(".ended").exists()]
        return any(str(third.pid) in path.read_text().split() for path in marks)

    with Farm(farm.address, function=act) as workers:
        stream = workers.run(items)
        found = [next(stream)]
        soon(begun_there)
        third.kill()
        found += stream
    third.wait()
    assert sorted(outcome.result["number"] for outcome in found) == list(range(24))
    ended = {path.stem: path.read_text().count("ended") for path in tmp_path.glob("*.ended")}
    assert set(ended) == {str(number) for number in range(24)}
    begun = {path.stem: path.read_text().split() for path in tmp_path.glob("*.begun")}
    twice = [number for number, times in ended.items() if times > 1]
    assert all(str(third.pid) in begun[number] for number in twice)
    assert max(map(len, begun.values())) == 2, "one was in the middle of it"


@pytest.mark.parametrize(
    ("tags", "limits", "failure"),
    [
        pytest.param({"seconds": 60}, PoolLimits(seconds=5), "took longer than 5 seconds", marks=pytest.mark.slow),
        ({"eat": 1 << 33}, PoolLimits(memory=1 << 32), "ran out of memory"),
        ({"die": True}, PoolLimits(), "its process ended by signal 9"),
        ({"write": 1 << 20}, PoolLimits(output=1 << 16), "OSError: [Errno 27] File too large"),
    ],
)
def test_limits_hold_on_workers(farm: Lab, tmp_path: Path, tags: Any, limits: PoolLimits, failure: str) -> None:
    (found,) = outcomes(farm.address, rows(1, folder=str(tmp_path), **tags), limits=limits)
    assert (found.result, found.failure) == (None, failure)
    (good,) = outcomes(farm.address, rows(1), limits=limits)
    assert good.result["number"] == 0, "the worker goes on"


def test_an_address_where_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "SECONDS", 0.5)
    begun = time.monotonic()
    with pytest.raises(UaccelError) as told:
        Farm("tcp://127.0.0.1:9")
    assert time.monotonic() - begun < 5
    wanted = "no scheduler answers at tcp://127.0.0.1:9 within 0.5 s ("
    assert str(told.value).startswith(wanted)
    assert " object at " not in str(told.value)
    assert str(told.value).endswith("; start one with 'dask scheduler', or correct the address and its --tls")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--scheduler", "127.0.0.1"], "'127.0.0.1' is no address of a scheduler; wanted one such as tcp://"),
        (["--scheduler", "tls://h:1"], "tls://h:1 takes --tls FILE.pem; wanted one's own certificate, its key, and "),
        (["--scheduler", "tcp://h:1", "--tls", "m.toml"], "tcp://h:1 is not encrypted, and there is --tls; "),
        (["--scheduler", "tls://h:1", "--tls", "m.toml"], "--tls: m.toml has no certificate; wanted one's own "),
        (["--scheduler", "tcp://h:1", "-j", "2"], "-j is for the cores of this computer; with --scheduler each "),
    ],
)
def test_options_that_do_not_fit(folder: Path, words: list[str], complaint: str) -> None:
    done = process("sweep", "m.toml", *words, cwd=folder)
    assert (done.status, done.complaint.startswith(complaint)) == (1, True), done.complaint


def test_a_board_that_nobody_has(farm: Lab) -> None:
    row = SweepRow(str(OWN / "gesture.tflite"), "nucleo_f746zg", tags={"number": 0})
    (found,) = outcomes(farm.address, [("d", row.to_json())], wait=1.0)
    wanted = f"no worker with board:nucleo_f746zg for 1 s; start one with 'uaccel worker {farm.address} "
    assert found.failure == f"{wanted}--board nucleo_f746zg=PORT'"


def test_a_worker_listens_on_loopback_alone_unless_it_is_told_a_host(farm: Lab) -> None:
    assert listens_at(farm.workers[0].pid) == {"0100007F"}, "127.0.0.1, as the kernel writes it"
    assert [listening_at(f"tcp://{host}:1", None) for host in ("127.0.0.1", "localhost", "[::1]")] == ["127.0.0.1"] * 3
    assert listening_at("tcp://203.0.113.1:8786", "127.0.0.2") == "127.0.0.2"
    with pytest.raises(InputError, match=r"^tcp://203.0.113.1:8786 is not on loopback, .*: --host \S+$"):
        listening_at("tcp://203.0.113.1:8786", None)
    with pytest.raises(
        InputError, match=r"^--host 203.0.113.7: a worker cannot listen there \(.*; wanted an address of "
    ):
        listening_at("tcp://203.0.113.1:8786", "203.0.113.7")


def listens_at(pid: int) -> set[str]:
    """The addresses, in hexadecimal, at which a process takes connections."""
    inodes = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}


@pytest.mark.parametrize(
    ("address", "host", "warned"),
    [
        ("tcp://127.0.0.1:1", "127.0.0.1", ""),
        ("tcp://203.0.113.1:1", "127.0.0.1", "203.0.113.1"),
        ("tcp://127.0.0.1:1", "0.0.0.0", "0.0.0.0"),
        ("tls://203.0.113.1:1", "0.0.0.0", ""),
    ],
)
def test_what_others_can_reach_without_keys_is_warned_of(address: str, host: str, warned: str) -> None:
    wanted = f"warning: {warned} without TLS: whoever reaches it, or the network between, may run programs at workers "
    assert exposure(address, host) == (f"{wanted}and change results; use tls:// with keys" if warned else "")


def test_boards_as_they_are_stated() -> None:
    assert stated_boards(["a=/dev/x", "b=socket://h:1"]) == {"a": "/dev/x", "b": "socket://h:1"}
    with pytest.raises(InputError, match=r"^--board a: wanted NAME=PORT, such as nucleo_f746zg=/dev/ttyACM0$"):
        stated_boards(["a"])


def test_what_a_worker_finds_and_offers(monkeypatch: pytest.MonkeyPatch) -> None:
    plugged = ListPortInfo("/dev/ttyACM7")
    monkeypatch.setattr(list_ports, "comports", lambda: [plugged])
    assert found_boards() == {}
    plugged.vid, plugged.pid = 0x0483, 0x374B
    assert found_boards() == {"nucleo_f746zg": "auto"}
    offer = WorkerCapacity("w", 2, {"nucleo_f746zg": "auto", "other": "/dev/x"})
    assert offer.resources == {"build": 2, "board:nucleo_f746zg": 1, "board:other": 1}
    assert WorkerCapacity("w", 0).resources == {}


def test_parcels_hold_what_rows_name(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "accelerator.py").write_text("x = 1\n")
    (tmp_path / "own" / "part").mkdir()
    (tmp_path / "own" / "part" / "a.c").write_text("int a;\n")
    shutil.copy(OWN / "gesture.tflite", tmp_path / "m.tflite")
    row = SweepRow(str(tmp_path / "m.tflite"), "host", (str(tmp_path / "own"), "matrix8"))
    packed = Packer().pack(row)
    names = {name for parcel in packed.parcels for name in parcel.files}
    assert names == {"m.tflite", "own/accelerator.py", "own/part/a.c"}
    assert SweepRow.from_json(substitute_paths(packed.row, packed.paths)) == row
    (own,) = (parcel for parcel in packed.parcels if parcel.name == "own")
    place = unpack(own, tmp_path / "kept")
    assert (place / "part" / "a.c").read_text() == "int a;\n"
    assert unpack(own, tmp_path / "kept") == place
    (tmp_path / "own" / "part" / "a.c").write_text("int b;\n")
    assert Packer().pack(row).row != packed.row
    with pytest.raises(InputError, match="wanted one that stays in its folder"):
        unpack(Parcel("0" * 32, "x", {"../x": b""}), tmp_path / "kept")


def test_parcels_hold_the_weights_that_a_model_has_in_other_files(tmp_path: Path) -> None:
    path = onnx_with_weights_beside(tmp_path / "a" / "b", "parts/w.bin")
    row = SweepRow(str(path), "host")
    (parcel,) = Packer().pack(row).parcels
    assert set(parcel.files) == {"model.onnx", "parts/w.bin"}
    place = unpack(parcel, tmp_path / "kept")
    assert import_model(place).digest == import_model(path).digest
    before = row.digest(), parcel.digest
    weights = path.parent / "parts" / "w.bin"
    weights.write_bytes(np.full(3, 7, np.float32).tobytes())
    assert import_model(path).digest != import_model(place).digest
    assert row.digest() != before[0]
    assert Packer().pack(row).parcels[0].digest != before[1]
    weights.rename(tmp_path / "w.bin")
    path.write_bytes(path.read_bytes().replace(b"parts/w.bin", b"../../w.bin"))
    assert set(Packer().pack(row).parcels[0].files) == {"model.onnx"}, "nothing from beyond its folder"


def test_a_worker_that_has_nothing_to_offer(farm: Lab) -> None:
    done = process("worker", farm.address, "--no-build")
    assert (done.status, done.complaint[:35]) == (1, "this worker has nothing to offer: n")


@pytest.mark.slow
def test_a_worker_that_is_told_to_end_does_so_and_others_do_its_rows(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        first = made.hire("first", "--jobs", "1")
        with Farm(made.address, function=act) as workers:
            stream = workers.run(rows(4, seconds=2))
            found = [next(stream)]
            (job,) = [pid for pid in children(first.pid) if b"spawn_main" in command(pid)]
            first.terminate()
            assert first.wait(20) == 143
            soon(lambda: b"spawn_main" not in command(job))
            made.hire("second", "--jobs", "1")
            found += stream
    assert sorted(outcome.result["number"] for outcome in found) == [0, 1, 2, 3]
    assert (tmp_path / "first.log").read_text() == "uaccel: ended by SIGTERM\n"


@pytest.mark.slow
def test_a_scheduler_that_goes_ends_the_sweep_and_the_workers(tmp_path: Path) -> None:
    with lab(tmp_path) as made:
        worker = made.hire("one", "--jobs", "1")
        with Farm(made.address, function=act) as workers:
            stream = workers.run(rows(20, seconds=0.2))
            next(stream)
            made.processes[0].kill()
            with pytest.raises(
                UaccelError, match=f"^the scheduler at {made.address} has gone; start it, and the same "
            ):
                list(stream)
        assert worker.wait(60) == 1
        said = (tmp_path / "one.log").read_text().splitlines()
        assert said[-1] == f"uaccel: error: the scheduler at {made.address} has gone; start it, and this worker again"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_with_keys_only_those_who_have_them_are_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "SECONDS", 3.0)
    ours, theirs = keys_in(tmp_path / "ours"), keys_in(tmp_path / "theirs")
    scheduler = ["--protocol", "tls", "--tls-ca-file", str(ours), "--tls-cert", str(ours)]
    with lab(tmp_path, *scheduler, "--tls-key", str(ours)) as made:
        assert made.address.startswith("tls://")
        made.options = ["--tls", str(ours)]
        made.hire("one", "--jobs", "1")
        (found,) = outcomes(made.address, rows(1), tls=ours)
        assert found.result["number"] == 0
        for address, tls in ((made.address, theirs), (made.address.replace("tls", "tcp"), None)):
            with pytest.raises(
                UaccelError, match=r"^no scheduler answers at t.*; start one with 'dask scheduler', or "
            ):
                Farm(address, tls=tls)


def keys_in(folder: Path) -> Path:
    """A file of keys for all ends: a certificate that another one signed, its key, and that other one."""
    folder.mkdir()
    for name, signer in (("signer", []), ("own", ["-CA", "signer.pem", "-CAkey", "signer.key"])):
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-days", "2"]
        command += ["-keyout", f"{name}.key", "-out", f"{name}.pem", *signer]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)
    whole = folder / "keys.pem"
    whole.write_text("".join((folder / name).read_text() for name in ("own.pem", "own.key", "signer.pem")))
    return whole


# ------------------------------------------------------------------------------------------------ boards at workers

BOARD_MATRIX = """
models = ["gesture.tflite"]
boards = ["{board}", "host"]
[run]
samples = 2
[[options]]
[[options]]
seed = 1
"""


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    board_with_tools("netduino_plus_2")
    with Desk(tmp_path / "desk") as desk:
        yield desk


@pytest.fixture
def matrix(desk: Desk, tmp_path: Path) -> Path:
    shutil.copy(OWN / "gesture.tflite", tmp_path)
    path = tmp_path / "boards.toml"
    path.write_text(BOARD_MATRIX.replace("{board}", str(desk.board_file)))
    return path


@contextmanager
def bench(folder: Path, desk: Desk, wait: str) -> Iterator[Lab]:
    """One worker that builds; and one at the board, which has neither TVM nor a compiler."""
    (folder / "lab").mkdir()
    with lab(folder / "lab") as made:
        made.hire("builds", "--jobs", "1")
        poor = folder / "poor"
        poor.mkdir()
        (poor / "tvm.py").write_text("raise ImportError('there is no TVM here')\n")
        (poor / "true").symlink_to("/bin/true")
        words = ("--no-build", "--board", f"stand_in={desk.port}", "--board-wait", wait)
        made.hire("bench", *words, first=str(poor), PATH=str(poor))
        yield made


@pytest.mark.slow
def test_a_board_elsewhere_gives_what_it_gives_here(desk: Desk, matrix: Path, tmp_path: Path) -> None:
    """Taken away while it is flashed, and put back: nobody sees that in the results."""
    here, there = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    assert process("sweep", matrix, "-o", here, "-j", "1").status == 0
    image = desk.folder / "flash.elf"
    image.unlink()
    with bench(tmp_path, desk, "20") as made:
        command = [sys.executable, "-m", "uaccel", "sweep", str(matrix), "-o", str(there), "--json"]
        child = subprocess.Popen([*command, "--scheduler", made.address], stdout=subprocess.PIPE)
        soon(image.exists)
        desk.order("unplug")
        time.sleep(1)
        desk.order("plug")
        out, _ = child.communicate(timeout=400)
    assert (child.returncode, json.loads(out)["counts"]) == (0, {"right": 4})
    assert alike(lines(there)) == alike(lines(here))
    assert max(result["attempts"] for result in lines(there)) > 1, "it was taken away in the middle"


@pytest.mark.slow
def test_a_board_that_fails_three_times_is_left_alone(desk: Desk, matrix: Path, tmp_path: Path) -> None:
    target = tmp_path / "r.jsonl"
    desk.order("unplug")
    with bench(tmp_path, desk, "0") as made:
        done = process("sweep", matrix, "-o", target, "--scheduler", made.address, "--json")
        assert (done.status, done.report["counts"]) == (1, {"right": 2, "failed": 2})
        errors = {result["error"] for result in lines(target) if result["status"] == "failed"}
        assert errors == {
            "board stand_in is left alone: it failed 3 times in a row, last: board stand_in is not at "
            f"{desk.port} of worker bench; plug it in; look after it, then sweep again"
        }
        desk.order("plug")
        done = process("sweep", matrix, "-o", target, "--scheduler", made.address, "--json")
        assert (done.status, done.report["counts"], done.report["taken_over"]) == (0, {"right": 4}, 2)


@pytest.mark.slow
def test_cut_off_by_ctrl_c_and_resumed(farm: Lab, folder: Path, tmp_path: Path) -> None:
    text = (folder / "m.toml").read_text() + "".join(f"[[options]]\nseed = {seed}\n" for seed in range(8))
    (folder / "many.toml").write_text(text)
    there = tmp_path / "there.jsonl"
    command = [sys.executable, "-m", "uaccel", "sweep", str(folder / "many.toml"), "-o", str(there)]
    child = subprocess.Popen([*command, "--scheduler", farm.address], stderr=subprocess.PIPE)
    soon(lambda: there.exists() and there.read_bytes().count(b"\n") >= 2)
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=20)
    assert (child.returncode, said.splitlines()[-1]) == (130, b"uaccel: interrupted")
    before = len(lines(there))
    assert 2 <= before < 8
    done = process("sweep", folder / "many.toml", "-o", there, "--scheduler", farm.address, "--json")
    assert (done.status, done.report["taken_over"], len(lines(there))) == (0, before, 8)
    assert len({result["digest"] for result in lines(there)}) == 8


# ------------------------------------------------------------------------------------------------ pytest in the lab

CHECKS = """
import pytest
from uaccel.errors import InputError, VerificationError

MODEL = {model!r}

def test_right(uaccel_board):
    outcome = uaccel_board.check(MODEL)
    assert outcome.stack > 0 or uaccel_board.name == "host"
    (name,) = outcome.outputs
    with pytest.raises(VerificationError, match="gesture.tflite on board .* is not what was expected: sample 0"):
        uaccel_board.check(MODEL, expected={{name: outcome.outputs[name] ^ 1}}, accelerators=["matrix8"])

def test_no_line(uaccel_board):
    with pytest.raises(InputError, match="a session with board host goes over a line, and --uaccel-scheduler gives"):
        uaccel_board.session(MODEL).__enter__()
"""


@pytest.mark.slow
def test_checks_of_pytest_run_in_the_lab(farm: Lab, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(CHECKS.format(model=str(OWN / "gesture.tflite")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py", "--uaccel-scheduler"]
    done = subprocess.run([*command, farm.address], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout
    absent = ["--uaccel-board", "nucleo_f746zg", "--uaccel-wait", "1", "-k", "right"]
    done = subprocess.run([*command, farm.address, *absent], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 1
    assert "DeviceError: no worker with board:nucleo_f746zg for 1 s; start one with " in done.stdout
