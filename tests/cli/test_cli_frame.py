"""What holds for every command: exit statuses, one line for an error, and one JSON object on stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from uaccel.board import load_board
from uaccel.cli import app, output
from uaccel.cli.command import Command
from uaccel.errors import BoardError, DeviceError, InputError, InternalError, ModelError, ToolError, VerificationError
from uaccel.version import __version__

Outcome = Callable[[], None]


def uaccel(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """The real command line in a process of its own."""
    command = [sys.executable, "-m", "uaccel", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


def script(body: str) -> list[str]:
    """A process whose command line has one more command, ``probe``, with this body."""
    program = """
        import os, sys, time
        from uaccel.cli import app
        from uaccel.cli.command import Command
        from uaccel.cli.output import emit, progress

        class Probe(Command):
            def run(self) -> None:
                as_json = self.as_json
                BODY

        app.COMMANDS = (*app.COMMANDS, ("probe", None, Probe))
        sys.exit(app.main())
    """
    text = textwrap.dedent(program)
    return [
        sys.executable,
        "-c",
        text.replace("BODY", textwrap.indent(textwrap.dedent(body), " " * 8).strip()),
    ]


def fail_with(monkeypatch: pytest.MonkeyPatch, action: Outcome) -> None:
    """Give the command line a command ``probe`` that does this."""

    class Probe(Command):
        def run(self) -> None:
            action()

    monkeypatch.setattr(app, "COMMANDS", (("probe", None, Probe),))


def raising(error: BaseException) -> Outcome:
    def action() -> None:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (ModelError("m.tflite: cut short"), 1, "uaccel: error: m.tflite: cut short"),
        (BoardError("no such board"), 1, "uaccel: error: no such board"),
        (InputError("wrong shape"), 1, "uaccel: error: wrong shape"),
        (ToolError("no compiler"), 1, "uaccel: error: no compiler"),
        (VerificationError("byte 3 differs"), 3, "uaccel: error: byte 3 differs"),
        (DeviceError("silent"), 4, "uaccel: error: silent"),
        (KeyboardInterrupt(), 130, "uaccel: interrupted"),
        (typer.Abort(), 130, "uaccel: interrupted"),
        (typer.BadParameter("not a number"), 2, "uaccel: error: Invalid value: not a number"),
        (PermissionError(13, "Permission denied", "/o.tar"), 1, "uaccel: error: /o.tar: Permission denied"),
    ],
)
def test_each_way_to_fail_has_its_status_and_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    line: str,
) -> None:
    fail_with(monkeypatch, raising(error))
    assert app.main(["probe"]) == status
    out, err = capfd.readouterr()
    assert out == ""
    assert err.splitlines() == [line if status != 2 else f"{line}; see 'uaccel probe --help'"]


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (ZeroDivisionError("by nought"), "ZeroDivisionError: by nought"),
        (InternalError("oops"), "InternalError: oops"),
    ],
)
def test_a_bug_is_one_line_that_asks_for_a_report(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], error: Exception, seen: str
) -> None:
    monkeypatch.delenv("UACCEL_DEBUG", raising=False)
    fail_with(monkeypatch, raising(error))
    assert app.main(["probe"]) == 70
    out, err = capfd.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith(f"uaccel: internal error: {seen} (uaccel/cli/command.py:")
    assert line.endswith("please report this line (UACCEL_DEBUG=1 shows the traceback)")


def test_the_traceback_is_there_for_who_asks(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UACCEL_DEBUG", "1")
    fail_with(monkeypatch, raising(ZeroDivisionError("by nought")))
    assert app.main(["probe"]) == 70
    err = capfd.readouterr().err
    assert err.startswith("Traceback (most recent call last):")
    assert f'File "{__file__}"' in err


def test_an_error_stays_one_line_and_cannot_drive_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fail_with(monkeypatch, raising(ModelError("layer 'a\x1b[2J\nb' from a hostile file é")))
    assert app.main(["probe"]) == 1
    assert capfd.readouterr().err == "uaccel: error: layer 'a\\x1b[2J b' from a hostile file é\n"


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (BoardError("no such board"), {"message": "no such board", "kind": "BoardError", "status": 1}),
        (DeviceError("silent"), {"message": "silent", "kind": "DeviceError", "status": 4}),
        (KeyboardInterrupt(), {"message": "interrupted", "kind": "Interrupted", "status": 130}),
    ],
)
def test_with_json_an_error_is_an_object_too(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    error: BaseException,
    wanted: dict[str, Any],
) -> None:
    fail_with(monkeypatch, raising(error))
    assert app.main(["probe", "--json"]) == wanted["status"]
    out, err = capfd.readouterr()
    assert json.loads(out) == {"error": wanted}
    assert len(err.splitlines()) == 1


def test_with_json_a_bug_is_an_object_too(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    fail_with(monkeypatch, raising(ZeroDivisionError("by nought")))
    assert app.main(["probe", "--json"]) == 70
    error = json.loads(capfd.readouterr().out)["error"]
    assert (error["kind"], error["status"]) == ("InternalError", 70)
    assert error["message"].startswith("ZeroDivisionError: by nought")


def test_an_error_after_the_result_adds_no_second_object(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def action() -> None:
        output.emit({"bit_exact": False}, as_json=True, show=lambda console: None)
        raise VerificationError("byte 3 differs")

    fail_with(monkeypatch, action)
    assert app.main(["probe", "--json"]) == 3
    out, err = capfd.readouterr()
    assert json.loads(out) == {"bit_exact": False}
    assert err == "uaccel: error: byte 3 differs\n"


def test_a_result_that_is_no_json_is_a_bug(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    fail_with(monkeypatch, lambda: output.emit({"x": float("nan")}, as_json=True, show=lambda console: None))
    assert app.main(["probe", "--json"]) == 70
    assert json.loads(capfd.readouterr().out)["error"]["kind"] == "InternalError"


@pytest.mark.parametrize(
    ("arguments", "seen", "command"),
    [
        (["nonsense"], "nonsense", "uaccel"),
        (["boards", "host", "extra"], "extra", "uaccel boards"),
        (["--colour"], "--colour", "uaccel"),
    ],
)
def test_a_usage_error_is_status_2(arguments: list[str], seen: str, command: str) -> None:
    done = uaccel(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("uaccel: error: ")
    assert seen in line
    assert line.endswith(f"; see '{command} --help'")


def test_a_usage_error_with_json_is_an_object_too() -> None:
    done = uaccel("nonsense", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["kind"] == "UsageError"


def test_version() -> None:
    done = uaccel("--version")
    assert (done.returncode, done.stdout) == (0, f"uaccel {__version__}\n")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_command(arguments: list[str]) -> None:
    done = uaccel(*arguments)
    assert done.returncode == 0
    listed = done.stdout.partition("Commands:")[2]
    assert {"boards", "doctor"} <= {line.split()[0] for line in listed.splitlines() if line.strip()}


def test_only_the_object_reaches_stdout() -> None:
    """Whoever else writes to stdout meanwhile, Python, C or a child, finds itself on stderr."""
    body = """
        print("from Python")
        os.write(1, b"from C\\n")
        os.system("echo from a child")
        emit({"answer": 42, "name": "é"}, as_json, show=None)
        print("afterwards")
    """
    done = subprocess.run([*script(body), "probe", "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout == '{"answer": 42, "name": "é"}\n'
    for line in ("from Python", "from C", "from a child", "afterwards"):
        assert line in done.stderr.splitlines()


def test_without_json_a_person_is_shown_the_text_as_it_stands() -> None:
    body = """emit({}, as_json, lambda console: console.print("uaccel[test] :tada: " + "x" * 150))"""
    done = subprocess.run([*script(body), "probe"], capture_output=True, text=True, check=False)
    assert done.stdout == f"uaccel[test] :tada: {'x' * 150}\n"


def test_progress_is_a_line_a_step_where_nobody_watches() -> None:
    body = """
        with progress() as step:
            step("importing a.tflite")
            step("planning memory")
        emit({"done": True}, as_json, show=None)
    """
    done = subprocess.run([*script(body), "probe", "--json"], capture_output=True, text=True, check=False)
    assert done.stderr == "uaccel: importing a.tflite\nuaccel: planning memory\n"
    assert json.loads(done.stdout) == {"done": True}


def test_progress_on_a_terminal_leaves_a_line_with_the_time_of_each_step() -> None:
    body = """
        with progress() as step:
            step("importing a.tflite")
            step("planning memory")
    """
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    done = subprocess.run([*script(body), "probe"], stdout=subprocess.PIPE, stderr=theirs, env=environment, check=False)
    os.close(theirs)
    text = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert (done.returncode, done.stdout) == (0, b"")
    for description in ("importing a.tflite", "planning memory"):
        (line,) = [line for line in text.splitlines() if description in line and " s" in line]
        assert line.rstrip().removesuffix("\x1b[0m").endswith(" s")


@pytest.mark.parametrize(
    ("number", "status", "words"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "ended by SIGTERM"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
    ],
)
def test_a_signal_ends_quietly(number: signal.Signals, status: int, words: str) -> None:
    body = """
        print("ready", file=sys.stderr, flush=True)
        time.sleep(60)
    """
    child = subprocess.Popen(
        [*script(body), "probe", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # jobs in the background and under nohup ignore some
    )
    assert child.stdout is not None
    assert child.stderr is not None
    assert child.stderr.readline() == "ready\n"
    time.sleep(0.1)  # into the sleep itself
    child.send_signal(number)
    out, err = child.communicate(timeout=30)
    assert child.returncode == status
    assert err == f"uaccel: {words}\n"
    assert json.loads(out)["error"]["status"] == status


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_a_reader_who_leaves_hears_no_complaint(flag: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "uaccel", "boards", *flag]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_a_full_disk_is_the_environments_fault(flag: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "uaccel", "boards", *flag]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "uaccel: error: standard output: No space left on device\n")


def test_boards_for_programs_and_for_people() -> None:
    done = uaccel("boards", "--json")
    assert done.returncode == 0
    (host,) = [board for board in json.loads(done.stdout)["boards"] if board["name"] == "host"]
    assert host == {
        "name": "host",
        "description": "This computer: firmware as a native process",
        "cpu": {"name": "native", "arch": "native", "features": []},
        "run": ["host"],
        "proven": "here",
        "flash": None,
        "memories": [],
        "file": host["file"],
    }
    assert Path(host["file"]).is_file()
    shown = uaccel("boards")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "host" in shown.stdout
    assert host["description"] in shown.stdout


def test_a_board_of_ones_own_is_checked_and_described(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    text = load_board("mps2_an386").file.read_text()
    file.write_text(text + "\n[[fixed]]\naddress = 0x400\nwords = [0xFFFF_FFFF, 0xFFFF_FFFE]\n")
    shown = uaccel("boards", str(file))
    assert (shown.returncode, shown.stderr) == (0, "")
    for line in (
        "Board     mine: Arm MPS2, Cortex-M4F (AN386)",
        "CPU       cortex-m4 (armv7em), features: fpu, dsp",
        "Memory    psram (external): 16 MiB, 0x21000000 to 0x21ffffff, reached by accelerators",
        "Fixed     0x00000400: 0xffffffff 0xfffffffe",
        "Port      mps, console uart, timer systick, stack 8,192 bytes",
        "Clock     25,000,000 Hz",
    ):
        assert f"  {line}" in [row.rstrip() for row in shown.stdout.splitlines()]
    (told,) = json.loads(uaccel("boards", str(file), "--json").stdout)["boards"]
    assert (told["name"], told["file"]) == ("mine", str(file))
    file.write_text(text.replace("armv7em", "armv7"))
    wrong = uaccel("boards", str(file))
    assert wrong.returncode == 1
    assert f"{file}:8: 'arch' in [cpu] is 'armv7'; wanted one of " in wrong.stderr


def test_the_light_commands_load_nothing_heavy() -> None:
    program = """
        import sys
        from uaccel.cli import app
        assert app.main(["boards", "--json"]) == 0
        heavy = {"tvm", "numpy", "tflite"} & set(sys.modules)
        assert not heavy, heavy
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
