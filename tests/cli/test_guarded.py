"""Whatever a model does to native code: one line, exit status 1, within the limits that the user sets."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from support.models.networks import OWN
from support.run.command import Done
from uaccel.cli.app import make_app
from uaccel.cli.guard import READING

GESTURE = OWN / "gesture.tflite"
START = "import sys; from uaccel.cli import main\n{}\nsys.exit(main())"
PLANTED = """
import ctypes, time, types
from uaccel import frontend
from uaccel.runner import prepare
def planted(path, shapes):
    {}
sys.modules["uaccel.frontend.tflite.importer"] = types.SimpleNamespace(import_tflite=planted)
prepare.prepare = lambda request, step, cache: frontend.import_model(request.model)
"""


def command(planted: str, *arguments: str | Path) -> tuple[Done, float]:
    """With this body in place of the reader of TFLite files, the compiler left away; and how long it took."""
    program, begun = START.format(PLANTED.format(planted) if planted else ""), time.monotonic()
    words = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    return Done(done.returncode, done.stdout, done.stderr), time.monotonic() - begun


CRASH = f"{GESTURE} crashes native code that uaccel calls ({{}} at uaccel/frontend/__init__.py:"
DAMAGED = "): is the file damaged? If it comes from a converter, please report it with this line"
LATE = f"importing {GESTURE} takes more than 0.5 s; --limit-seconds gives it more"
LARGE = f"importing {GESTURE} takes more than 67108864 bytes beside uaccel's own; --limit-memory gives it more"
FAULTS = [
    ("ctypes.string_at(0)", (), CRASH.format("SIGSEGV"), DAMAGED),
    ("ctypes.CDLL(None).abort()", (), CRASH.format("SIGABRT"), DAMAGED),
    ("ctypes.CDLL(None).kill(ctypes.CDLL(None).getpid(), 9)", (), "", "of memory"),
    ("time.sleep(60)", ("--limit-seconds", "0.5"), LATE, ""),
    ("ctypes.PyDLL(None).sleep(60)", ("--limit-seconds=0.5",), LATE, ""),
    ("bytearray(1 << 28)", ("--limit-memory", "64M"), LARGE, ""),
    ("raise RuntimeError('std::bad_alloc')", ("--limit-memory", "64M"), LARGE, ""),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("planted", "options", "begins", "ends"), FAULTS, ids=[row[0][:40] for row in FAULTS])
def test_a_planted_fault(planted: str, options: tuple[str, ...], begins: str, ends: str, tmp_path: Path) -> None:
    output = tmp_path / "out.tar"
    done, seconds = command(planted, "compile", GESTURE, "-o", output, "--no-cache", "--json", *options)
    assert done.status == 1, done.err
    assert done.complaint.startswith(begins)
    assert done.complaint.endswith(ends)
    assert json.loads(done.out) == {"error": {"message": done.complaint, "kind": "ModelError", "status": 1}}
    assert not output.exists()
    assert seconds < 40


def test_limits_that_suffice_change_nothing(tmp_path: Path) -> None:
    """Nor are they left in force for what comes after the import."""
    options = ("--limit-memory", "1G", "--limit-seconds", "60", "--no-cache", "--json")
    done, _ = command("", "run", GESTURE, *options)
    assert done.status == 0, done.err
    assert done.report["board"] == "host"


@pytest.mark.parametrize("words", [("--limit-memory", "much"), ("--limit-seconds", "0"), ("--limit-seconds", "x")])
def test_limits_that_are_none(words: tuple[str, str]) -> None:
    done, _ = command("", "compile", GESTURE, *words, "--json")
    assert done.status in (1, 2)
    assert words[0] in done.complaint


def test_code_that_ends_the_process_is_no_success() -> None:
    done, _ = command("import os; os._exit(0)", "explain", GESTURE, "--json")
    assert done.status == 1
    assert done.complaint == (
        "the process ended before its result, with exit status 0: code that it loads, such as an accelerator's, "
        "calls exit; raise an error there instead"
    )
    assert done.report == {"error": {"message": done.complaint, "kind": "UaccelError", "status": 1}}


def test_every_command_that_reads_a_model_is_guarded() -> None:
    made: Any = get_command(make_app())
    taking = {name for name, command in made.commands.items() if "favour" in {p.name for p in command.params}}
    assert taking == READING - {"quantize"}  # which has options of its own
