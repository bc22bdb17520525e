"""No process outlives the one that started it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from support.device.family import Family, family
from uaccel.build import children

IN_A_THREAD = "thread = threading.Thread(target=children.start, args=(['sleep', '1000'],))\nthread.start()"
PARENT = """
import os, signal, sys, threading, time
from uaccel.build import children

def begin():
    BODY

begin()
print("ready", flush=True)
time.sleep(1000)
"""


def parent(body: str) -> list[str]:
    return [sys.executable, "-c", PARENT.replace("BODY", textwrap.dedent(body).replace("\n", "\n    "))]


def sleepers(members: dict[int, str]) -> int:
    return sum(line.startswith("sleep 1000") for line in members.values())


def begun(started: Family, count: int) -> None:
    started.wait_for(lambda members: sleepers(members) == count)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize(
    ("body", "count"),
    [
        ("children.start(['sleep', '1000'])", 1),
        ("children.start(['sh', '-c', 'sleep 1000 & sleep 1000 & wait'], group=True)", 2),
        (f"{IN_A_THREAD}\nthread.join()", 1),
        ("children._setpriv = lambda: None\nchildren.start(['sleep', '1000'])", 1),
    ],
    ids=["one", "a group", "of a thread that has ended", "without help of the system"],
)
def test_children_die_with_their_parent(body: str, count: int, number: signal.Signals) -> None:
    with family(parent(body)) as started:
        begun(started, count)
        assert started.first.stdout is not None
        assert started.first.stdout.readline() == "ready\n", "it is watched from now on"
        started.first.send_signal(number)
        assert started.first.wait() == -number
        started.must_be_gone()


def test_they_live_as_long_as_it_does() -> None:
    """Also those that were started by a thread that has ended."""
    body = (
        "threading.Thread(target=children.start, args=(['sleep', '1000'],)).start()\nchildren.start(['sleep', '1000'])"
    )
    with family(parent(body)) as started:
        begun(started, 2)
        with pytest.raises(subprocess.TimeoutExpired):
            started.first.wait(1.0)
        assert sleepers(started.members()) == 2


def test_a_parent_that_is_gone_already_gets_no_child() -> None:
    """It died between starting the process and the process's asking who its parent is."""
    wrapper = children._wrapper(signal.SIGKILL)
    if wrapper is None:
        pytest.skip("this system has no setpriv")
    done = subprocess.run([*wrapper, "1", "echo", "begun"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_child_is_told_by_the_signal_that_it_wants() -> None:
    body = """children.start(["sh", "-c", "trap 'kill $!; exit' TERM; sleep 1000 & wait"], by=signal.SIGTERM)"""
    with family(parent(body)) as started:
        begun(started, 1)
        started.first.kill()
        started.first.wait()
        started.must_be_gone()


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("/nowhere/program", FileNotFoundError),
        ("no-such-program", FileNotFoundError),
        ("/", PermissionError),
        (__file__, PermissionError),
    ],
)
def test_a_program_that_is_none(program: str, error: type[OSError]) -> None:
    """As Popen says it."""
    with pytest.raises(error) as wanted:
        subprocess.Popen([program])
    with pytest.raises(error) as caught:
        children.start([program])
    assert (caught.value.errno, caught.value.filename) == (wanted.value.errno, wanted.value.filename)


def test_a_program_beside_the_folder_that_it_runs_in(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\nexit 7\n")
    (tmp_path / "tool").chmod(0o755)
    assert children.start(["./tool"], cwd=tmp_path).wait() == 7


def test_run_gives_status_and_all_output() -> None:
    done = children.run(["sh", "-c", "echo out; echo err >&2; exit 3"])
    assert (done.returncode, done.stdout) == (3, "out\nerr\n")


def test_run_ends_all_that_it_started() -> None:
    body = """
    try:
        children.run(['sh', '-c', 'sleep 1000 & sleep 1000'], timeout=0.5)
    except BaseException as error:
        print(type(error).__name__, flush=True)
    """
    with family(parent(body)) as started:
        assert started.first.stdout is not None
        assert started.first.stdout.readline() == "TimeoutExpired\n"
        started.wait_for(lambda members: len(members) == 1)


def test_a_signal_becomes_an_exception_once() -> None:
    """Whoever clears away is not disturbed by a second one."""
    cleared: list[str] = []

    def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGHUP)
            cleared.append("all")

    with pytest.raises(children.EndedError) as caught, children.ending_signals() as ended:
        work()
    assert cleared == ["all"]
    assert (caught.value.status, str(caught.value), ended) == (143, "SIGTERM", [caught.value])
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with children.ending_signals():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
