"""How the server runs tools: what it says when one fails, and that none outlives its client."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import pytest
from api_server.programs import first_error, tool_words

from support.run.raw_server import RawServer, wait_for_end

CMAKE = """CMake Error at CMakeLists.txt:9 (message):

  board x: none-gcc is not in PATH;
  install it


-- Configuring incomplete, errors occurred!
"""


TWO_ERRORS = """[1/2] cc
a.c:3:1: error: no such thing
a.c:4:1: error: nor this
1 error generated
"""
UNDEFINED = """main.c:(.text+0x5): undefined reference to `nothing'
collect2: error: ld returned 1 exit status
"""
FULL = """ld: firmware.elf section `.bss' will not fit in region `sram'
ld: region `sram' overflowed by 12345 bytes
"""
OPENOCD = """Open On-Chip Debugger
Info : clock speed 2000 kHz
Error: open failed
in procedure 'program'
** OpenOCD init failed **
"""


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("", "it said nothing"),
        ("\n \n", "it said nothing"),
        ("one\ntwo\n\n", "two"),
        (TWO_ERRORS, "a.c:3:1: error: no such thing"),
        ("a.c:1:10: fatal error: x.h: No such file\n", "a.c:1:10: fatal error: x.h: No such file"),
        (UNDEFINED, "main.c:(.text+0x5): undefined reference to `nothing'"),
        (CMAKE, "CMake Error at CMakeLists.txt:9 (message): board x: none-gcc is not in PATH; install it"),
        (
            'CMake Error at X.cmake:70 (message):\n  The C compiler\n\n    "/usr/bin/gcc"\n\n'
            "  is not able to compile a simple test\n  program.\n\n    /usr/bin/ld: cannot find -lgcc\n",
            "the C compiler cannot make a program: /usr/bin/ld: cannot find -lgcc",
        ),
        (
            "CMake Error\n  is not able to compile a simple test program.\n\n    x.c: In function 'main':\n"
            "    x.c:11:1: sorry, unimplemented: Thumb-1 'hard-float' VFP ABI\n",
            "the C compiler cannot make a program: x.c:11:1: sorry, unimplemented: Thumb-1 'hard-float' VFP ABI",
        ),
        ("CMake Error: The source is elsewhere\n", "CMake Error: The source is elsewhere"),
        (
            FULL,
            "memory 'sram' of the board is too small by 12,345 bytes; choose a board with more, or a smaller model",
        ),
        ("error: " + "x" * 1000, "error: " + "x" * 293),
    ],
)
def test_the_line_that_matters(output: str, words: str) -> None:
    assert first_error(output) == words


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (OPENOCD, "Error: open failed; ** OpenOCD init failed **"),
        ("0000123 C No connected debug probes [__main__]\n", "0000123 C No connected debug probes [__main__]"),
        ("a\nb\n", "b"),
        ("", "it said nothing"),
        ("Error: 1\nError: 2\nError: 3\nError: 4\n", "Error: 1; Error: 2; Error: 3"),
        ("Error: same\nError: same\n", "Error: same"),
    ],
)
def test_a_flash_tools_own_words(output: str, words: str) -> None:
    assert tool_words(output) == words


def stand_in(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(0o755)
    return path


def test_a_build_ends_with_its_client(project: Path, tmp_path: Path) -> None:
    """And what the build has started, too."""
    body = f"""
import os, subprocess, time
child = subprocess.Popen(["sleep", "60"])
open({str(tmp_path / "pids")!r}, "w").write(f"{{os.getpid()}} {{child.pid}}\\n")
time.sleep(60)
"""
    stand_in(tmp_path, "cmake", body)
    with RawServer(project, environment={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}) as server:
        server.send(json.dumps({"jsonrpc": "2.0", "method": "build", "params": {"options": {}}, "id": 1}))
        pids = tmp_path / "pids"
        deadline = time.monotonic() + 20
        while not (pids.is_file() and pids.read_text().endswith("\n")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        server.hang_up()
        assert server.process.wait(20) == 0
    for pid in pids.read_text().split():
        wait_for_end(int(pid))


def test_a_tool_that_leaves_a_child_behind_is_no_reason_to_wait(project: Path, tmp_path: Path) -> None:
    """A daemon that keeps the tool's output open, as compiler caches do."""
    body = 'import subprocess\nsubprocess.Popen(["sleep", "30"], start_new_session=True)'
    stand_in(tmp_path, "cmake", body)
    begin = time.monotonic()
    with RawServer(project, environment={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}) as server:
        server.result("build", options={})
    assert time.monotonic() - begin < 20


def test_a_tool_that_is_missing(project: Path, tmp_path: Path) -> None:
    """Neither in PATH nor where pip puts programs, beside Python."""
    (tmp_path / "python").symlink_to(Path(sys.executable).resolve())
    with RawServer(project, environment={"PATH": str(tmp_path)}, python=tmp_path / "python") as server:
        error = server.error("build", options={})
    assert error == {
        "code": -32000,
        "message": "cmake (needed for building firmware) is not in PATH; install it",
        "data": {"kind": "tool"},
    }


@pytest.mark.slow
def test_much_output_is_taken(project: Path, tmp_path: Path) -> None:
    stand_in(tmp_path, "cmake", "print('x' * 70, *range(10**6), sep='\\n')\nraise SystemExit('the last words')")
    with RawServer(project, environment={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}) as server:
        error = server.error("build", options={})
    assert error["message"] == "configuring the firmware failed (cmake, exit status 1): the last words"
