"""A second run takes what follows from content out of the cache, measures the rest, and is never wrong for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.models.onnx_rows import onnx_with_weights_beside
from support.run.command import process
from uaccel.board import load_board
from uaccel.errors import DeviceError
from uaccel.runner.options import EngineRequest, ProjectRunOptions
from uaccel.runner.perform import Performed, perform
from uaccel.runner.prepare import key_of, prepare
from uaccel.runner.request import RunRequest
from uaccel.util.cache import Cache
from uaccel.util.files import data_dir

GESTURE = OWN / "gesture.tflite"


class Told:
    """The steps of a run."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def __call__(self, description: str) -> None:
        self.steps.append(description)

    def count(self, done: int, total: int) -> None:
        pass

    def log(self, line: object) -> None:
        pass


def request(model: Path = GESTURE, board: str = "host", **engines: Any) -> RunRequest:
    wishes = ProjectRunOptions(verify="outputs", verified_samples=3)
    return RunRequest(model, load_board(board), board, wishes=wishes, engines=EngineRequest(**engines))


def run(wanted: RunRequest, cache: Cache) -> tuple[Performed, list[str]]:
    told = Told()
    return perform(wanted, told, cache), told.steps


COMPILES = ["import", "simplify", "partition", "lower", "plan memory", "emit C"]
JUDGES = "execute the exact meaning and compare"


def report_of(done: Performed) -> dict[str, Any]:
    """What two runs must agree in."""
    return {name: value for name, value in done.report.items() if name != "layers"}


@pytest.mark.sample(1)
@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_the_second_run_compiles_and_judges_nothing_and_tells_the_same(board: str, tmp_path: Path) -> None:
    if board != "host":
        board_with_tools(board)
    cache = Cache(tmp_path)
    wanted = request(board=board, accelerators=("matrix8",))
    first, steps = run(wanted, cache)
    assert {*COMPILES, "build the firmware", JUDGES} <= set(steps)
    second, steps = run(wanted, cache)
    assert [step for step in steps if not step.startswith(("run ", "read "))] == []
    assert report_of(second) == report_of(first)
    assert second.report["verify"]["bit_exact"]
    assert [row["calls"] for row in second.report["layers"]] == [row["calls"] for row in first.report["layers"]]
    assert second.report["artefacts"].keys() == {"archive", "firmware"}
    assert sorted({entry.kind for entry in cache.kept()}) == [
        "archive",
        "firmware",
        "model",
        "object",
        "recipe",
        "verdict",
    ]


@pytest.mark.slow
def test_a_kept_run_loads_no_compiler(tmp_path: Path) -> None:
    run(request(), Cache(tmp_path / "kept"))
    environment = os.environ | {"UACCEL_CACHE": str(tmp_path)}
    prelude = "import atexit; atexit.register(lambda: print('tvm' in sys.modules, file=sys.stderr))"
    done = process("run", GESTURE, "--verify", "--samples", "3", "--json", prelude=prelude, env=environment)
    assert done.status == 0
    assert done.report["verify"]["bit_exact"]
    assert done.err.splitlines()[-1] == "False"


def vendor(tmp_path: Path) -> Path:
    """A copy of the bundled accelerator."""
    folder = tmp_path / "matrix8"
    shutil.copytree(data_dir("accelerators") / "matrix8", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def _edit(folder: Path, file: str, old: str, new: str) -> None:
    path = folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


CHANGES: dict[str, Callable[[Path], object]] = {
    "its description": lambda folder: _edit(folder, "accelerator.py", '"""', '"""Anew. '),
    "its driver": lambda folder: (folder / "driver" / "more.h").write_text("/* more */\n"),
    "its device": lambda folder: next(folder.glob("device/*.c")).write_text(
        next(folder.glob("device/*.c")).read_text() + "/* more */\n"
    ),
}


def digest(wanted: RunRequest) -> str:
    key = key_of(wanted)
    assert key is not None
    return key.digest


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_vendor_changes_is_another_accelerator(change: Callable[[Path], object], tmp_path: Path) -> None:
    folder = vendor(tmp_path)
    wanted = request(accelerators=(str(folder),))
    before = digest(wanted)
    assert digest(request(accelerators=(str(folder),))) == before
    change(folder)
    assert digest(wanted) != before


def test_an_accelerator_that_another_one_builds_on_is_part_of_it(tmp_path: Path) -> None:
    base, cache = vendor(tmp_path), Cache(tmp_path / "kept")
    variant = tmp_path / "variant"
    shutil.copytree(base, variant)
    (variant / "accelerator.py").write_text(
        "from dataclasses import replace\nfrom pathlib import Path\nfrom uaccel.accelerator import module_of\n"
        f"base = module_of({str(base)!r})\n"
        "ACCELERATOR = replace(base.ACCELERATOR, name='variant', folder=Path(__file__).parent)\n"
    )
    wanted = replace(request(accelerators=(str(variant),)), wishes=ProjectRunOptions())

    def compiles() -> bool:
        told = Told()
        prepare(wanted, told, cache)
        return "import" in told.steps

    assert (compiles(), compiles()) == (True, False)
    _edit(base, "accelerator.py", '"""', '"""Anew. ')
    assert (compiles(), compiles()) == (True, False)


def test_what_files_hold_is_part_of_the_key(tmp_path: Path) -> None:
    board = tmp_path / "mine.toml"
    shutil.copy(load_board("host").file, board)
    own = replace(request(), board=load_board(str(board)), board_file="mine.toml")
    found = [digest(own)]
    board.write_text(board.read_text() + "\n# another\n")
    found += [digest(replace(own, board=load_board(str(board))))]
    model = tmp_path / "gesture.tflite"
    shutil.copy(GESTURE, model)
    found += [digest(request(model))]
    records = tmp_path / "records.json"
    for text in ("{}", "{ }"):
        records.write_text(text)
        found.append(digest(replace(own, engines=EngineRequest(records=records))))
    assert len(set(found)) == len(found)
    assert digest(replace(own, wishes=ProjectRunOptions())) == found[1]


@pytest.mark.slow
def test_a_device_that_fails_is_found_though_a_good_run_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = Cache(tmp_path)
    wanted = request(accelerators=("matrix8",))
    run(wanted, cache)
    monkeypatch.setenv("UACCEL_DEVICE_FAULT", "matrix8:error")
    with pytest.raises(DeviceError):
        run(wanted, cache)


def test_firmware_that_computes_something_else_is_found_though_its_verdict_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: what the board gives is one step off, while model, firmware and verdict lie in the cache."""
    from uaccel.runner import execute

    cache = Cache(tmp_path)
    run(request(), cache)
    honest = vars(execute)["run_batch"]

    def off_by_one(*given: Any, **how: Any) -> Any:
        done = honest(*given, **how)
        done.outputs[0][0].reshape(-1)[0] ^= 1
        return done

    monkeypatch.setattr(execute, "run_batch", off_by_one)
    done, steps = run(request(), cache)
    assert JUDGES in steps
    assert done.complaint.startswith("verification failed")
    again, _ = run(request(), cache)
    assert again.complaint == done.complaint


@pytest.mark.slow
def test_a_damaged_program_is_built_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    run(request(), cache)
    for program in tmp_path.glob("firmware/*/build/firmware"):
        program.write_bytes(program.read_bytes()[:-100])
    done, steps = run(request(), cache)
    assert "build the firmware" in steps
    assert done.report["verify"]["bit_exact"]


def test_weights_in_files_of_their_own_keep_a_model_out(tmp_path: Path) -> None:
    path = onnx_with_weights_beside(tmp_path, "w.bin", "x:0")
    cache = Cache(tmp_path / "kept")
    wanted = replace(request(path), wishes=ProjectRunOptions())
    run(wanted, cache)
    assert "import" in run(wanted, cache)[1]


@pytest.mark.slow
def test_the_commands_that_show_and_prune(tmp_path: Path) -> None:
    environment = os.environ | {"UACCEL_CACHE": str(tmp_path / "cache")}
    assert process("run", GESTURE, "--json", env=environment).status == 0
    shown = process("cache", "--json", env=environment).report
    wholes = {"archive", "firmware", "model"}
    assert shown["on"]
    assert set(shown["kinds"]) == wholes | {"object", "recipe"}
    assert [shown["kinds"][kind]["entries"] for kind in wholes] == [1, 1, 1]
    listed = process("cache", "list", "--json", env=environment).report["list"]
    assert {row["about"] for row in listed if row["kind"] in wholes} == {"gesture for host"}
    assert "uaccel_server.c" in {row["about"] for row in listed if row["kind"] == "object"}
    assert process("run", GESTURE, "--no-cache", "--json", env=environment).status == 0
    pruned = process("cache", "prune", "--json", env=environment).report
    assert (pruned["freed"], pruned["entries"]) == (shown["bytes"], 0)
    wrong = process("cache", "prune", "--to", "7x", env=environment)
    assert wrong.status == 1
    assert wrong.complaint == "--to '7x' is no size; wanted bytes, or a number with K, M or G, as in 500M"
