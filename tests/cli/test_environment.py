"""What is wrong around uaccel, not in it: places that cannot be written, boards, programs that are missing."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from support.models.networks import ROOT
from support.run.command import Call, Done, process


def assert_refused(done: Done, status: int, kind: str) -> str:
    """The error as JSON and as one line, both the same."""
    assert done.status == status, done.err
    assert done.report == {"error": {"message": done.complaint, "kind": kind, "status": status}}
    return done.complaint


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is wrong must show before the model is compiled."""

    def compile_model(*_: object, **__: object) -> None:
        raise AssertionError("this should have been refused first")

    monkeypatch.setattr("uaccel.pipeline.compile_model", compile_model)


COMMANDS = [("compile", "-o", "-o"), ("run", "--outputs", "--outputs")]


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize(("command", "option", "named"), COMMANDS, ids=["compile", "run"])
class TestPlacesToWrite:
    def test_a_folder_that_is_not_there(
        self, command: str, option: str, named: str, small: Path, tmp_path: Path, call: Call
    ) -> None:
        path = tmp_path / "none" / "out"
        complaint = assert_refused(call(command, small, option, path, "--json"), 1, "UaccelError")
        assert complaint == (
            f"cannot write {path}: there is no folder {path.parent}; choose another place with {named}"
        )

    def test_a_file_in_place_of_the_folder(
        self, command: str, option: str, named: str, small: Path, tmp_path: Path, call: Call
    ) -> None:
        (tmp_path / "file").touch()
        path = tmp_path / "file" / "out"
        complaint = assert_refused(call(command, small, option, path, "--json"), 1, "UaccelError")
        assert complaint == f"cannot write {path}: {path.parent} is no folder; choose another place with {named}"

    def test_a_folder_in_place_of_the_file(
        self, command: str, option: str, named: str, small: Path, tmp_path: Path, call: Call
    ) -> None:
        complaint = assert_refused(call(command, small, option, tmp_path, "--json"), 1, "UaccelError")
        assert complaint == f"cannot write {tmp_path}: it is a folder; choose another place with {named}"

    def test_a_device(self, command: str, option: str, named: str, small: Path, tmp_path: Path, call: Call) -> None:
        """It would be replaced by a file, which for /dev/stdout is the last thing that anybody wants."""
        os.mkfifo(tmp_path / "pipe")
        complaint = assert_refused(call(command, small, option, tmp_path / "pipe", "--json"), 1, "UaccelError")
        assert complaint.endswith(
            f"it is a device or a pipe, which cannot be replaced; choose another place with {named}"
        )
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)

    def test_a_folder_that_may_not_be_written(
        self, command: str, option: str, named: str, small: Path, call: Call, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
        complaint = assert_refused(call(command, small, option, "out", "--json"), 1, "UaccelError")
        assert complaint == f"cannot write out: folder . may not be written; choose another place with {named}"


def test_a_link_stays_a_link(small: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "elsewhere").mkdir()
    target, link = tmp_path / "elsewhere" / "real.tar", tmp_path / "link.tar"
    link.symlink_to(target)
    assert call("compile", small, "-o", link).status == 0
    assert link.is_symlink()
    assert target.is_file()
    assert [path.name for path in target.parent.iterdir()] == ["real.tar"]


def test_a_disk_that_fills_up_leaves_no_part(
    small: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("uaccel.util.files.write_tar", fail)
    path = tmp_path / "out.tar"
    complaint = assert_refused(call("compile", small, "-o", path, "--json"), 1, "UaccelError")
    assert complaint == f"cannot write {path}: No space left on device; choose another place with -o"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_long_name(small: Path, tmp_path: Path, call: Call) -> None:
    """Longer than the classic tar header holds."""
    name = "a" * 150
    assert call("compile", small, "--name", name, "-o", tmp_path / "x.tar").status == 0
    done = process("compile", small, "--name", name, "-o", tmp_path / "y.tar", "--json")
    assert done.report["name"] == name
    assert (tmp_path / "x.tar").read_bytes() == (tmp_path / "y.tar").read_bytes()


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("command", ["compile", "run"])
class TestBoards:
    def test_an_unknown_board(self, command: str, small: Path, call: Call) -> None:
        complaint = assert_refused(call(command, small, "--board", "hots", "--json"), 1, "BoardError")
        assert complaint.startswith("no board is called 'hots'; did you mean 'host'?")

    def test_a_board_file_that_is_not_there(self, command: str, small: Path, call: Call) -> None:
        complaint = assert_refused(call(command, small, "--board", "./none.toml", "--json"), 1, "BoardError")
        assert "none.toml" in complaint

    def test_a_board_file_that_is_wrong(self, command: str, small: Path, tmp_path: Path, call: Call) -> None:
        path = tmp_path / "mine.toml"
        path.write_text((ROOT / "boards/host.toml").read_text() + "\n[surprise]\nkey = 1\n")
        complaint = assert_refused(call(command, small, "--board", path, "--json"), 1, "BoardError")
        assert complaint.startswith(f"{path}:")
        assert "surprise" in complaint

    def test_an_accelerator_that_is_not_there(self, command: str, small: Path, call: Call) -> None:
        complaint = assert_refused(call(command, small, "--accelerator", "turbo", "--json"), 1, "AcceleratorError")
        assert "turbo" in complaint


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("pool", ["a b", "1st", "int", "_x", "class", "é"])
def test_a_pool_that_is_no_c_name(pool: str, small: Path, tmp_path: Path, call: Call) -> None:
    done = call("compile", small, "--workspace-pool", pool, "-o", tmp_path / "x.tar", "--json")
    assert assert_refused(done, 1, "UaccelError").startswith(f"--workspace-pool {pool!r} cannot name a member")


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["run", "--repeat", "0", "MODEL"],
        ["run", "--repeat", "-3", "MODEL"],
        ["run", "--repeat", "many", "MODEL"],
        ["run", "MODEL", "MODEL"],
        ["compile", "MODEL", "--inputs", "x.npz"],
        ["compile"],
    ],
    ids=" ".join,
)
def test_a_usage_error_is_status_2(arguments: list[str], small: Path, call: Call) -> None:
    words = [str(small) if word == "MODEL" else word for word in arguments]
    complaint = assert_refused(call(*words, "--json"), 2, "UsageError")
    assert complaint.endswith(f"; see 'uaccel {arguments[0]} --help'")


def compiler(folder: Path, body: str) -> Path:
    """A program that says it is gcc, and does this when it is to compile."""
    path = folder / "gcc"
    path.write_text(f'#!/bin/sh\ncase "$*" in *--version*) echo "gcc (Test) 12.2.0"; exit 0;; esac\n{body}\n')
    path.chmod(0o755)
    return path


def test_without_a_compiler_the_message_says_how_to_get_one(
    small: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    complaint = assert_refused(call("run", small, "--json"), 1, "ToolError")
    assert complaint.startswith(
        "C compiler (needed for firmware for board host): gcc or clang or cc or python-zig: not"
    )
    assert "to get it: " in complaint


def test_without_a_compiler_compile_works_all_the_same(
    small: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert call("compile", small, "-o", tmp_path / "x.tar").status == 0


@pytest.mark.sample(1)
@pytest.mark.parametrize("body", ['echo "x.c:1:2: error: out of luck" >&2; exit 1', "exit 1", "kill -9 $$"])
def test_a_compiler_that_fails(
    body: str, small: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", str(compiler(tmp_path, body)))
    complaint = assert_refused(call("run", small, "--json"), 1, "ToolError")
    assert "configuring the firmware failed" in complaint
    assert len(complaint) < 500


@pytest.mark.slow
def test_the_first_error_of_the_compiler_is_shown(small: Path, tmp_path: Path) -> None:
    prelude = f"""
import shutil
from pathlib import Path
from uaccel.util import files
from uaccel.codegen import header as headers
copy = Path({str(tmp_path)!r}) / "firmware"
shutil.copytree(files.data_dir("firmware"), copy)
header = copy / "kernels/common/uaccel_fixedpoint.h"
header.write_text(header.read_text() + "#error this header is broken\\n")
headers.data_dir = lambda name: copy
"""
    complaint = assert_refused(process("run", small, "--json", prelude=prelude), 1, "ToolError")
    assert complaint.startswith("building the firmware failed")
    assert complaint.endswith("this header is broken")


@pytest.mark.usefixtures("no_work")
def test_a_project_folder_that_cannot_be(small: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "file").touch()
    below = tmp_path / "file" / "further" / "below"
    for path, problem in (
        (tmp_path, "exists already; name a folder that does not"),
        (tmp_path / "file", "exists already; name a folder that does not"),
        (below, f"cannot be made: {tmp_path / 'file'} is no folder"),
    ):
        complaint = assert_refused(call("run", small, "--project", path, "--json"), 1, "UaccelError")
        assert complaint == f"--project {path} {problem}"
