"""Two users of one board."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import pytest

from support.run.holder import other_process
from uaccel.bench import BoardBusyError, hold
from uaccel.errors import DeviceError
from uaccel.session.board_ports import lock_file


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Nobody else's: with a folder of its own for the locks."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    device = tmp_path / "ttyACM0"
    device.touch()
    return str(device)


def test_one_after_the_other_may_have_a_board(port: str) -> None:
    for _ in range(3):
        with hold(port):
            assert lock_file(port).read_bytes() != b""
        assert lock_file(port).read_bytes() == b""


def test_the_second_is_told_who_has_it(port: str) -> None:
    with other_process(port) as other, pytest.raises(BoardBusyError) as caught, hold(port):
        pytest.fail("two have the board")
    start, since, end = str(caught.value).partition(" since ")
    assert start + since == f"the board at {port} is in use by process {other.pid} (the other run) since "
    assert end[8:] == "; try again when that has ended"


def test_what_the_holder_starts_has_the_board_too(port: str) -> None:
    """A test that holds a board may call ``uaccel run``; the board stays the test's when that ends."""
    with hold(port):
        note = lock_file(port).read_bytes()
        with other_process(port):
            assert lock_file(port).read_bytes() == note
        assert lock_file(port).read_bytes() == note
        with pytest.raises(BoardBusyError), hold(port):
            pytest.fail("two have the board")


def test_the_second_waits_for_the_first(port: str) -> None:
    with other_process(port) as other:
        begin = time.monotonic()
        with pytest.raises(BoardBusyError, match=r"also after 0\.3 s"), hold(port, wait=0.3):
            pytest.fail("two have the board")
        assert 0.3 <= time.monotonic() - begin < 5
        assert other.stdin is not None
        other.stdin.close()
        with hold(port, wait=20):
            pass
        other.stdin = None


def test_a_killed_run_holds_nothing(port: str) -> None:
    with other_process(port) as other:
        other.kill()
        other.wait()
        with hold(port):
            pass


def test_a_link_to_a_port_is_that_port(port: str, tmp_path: Path) -> None:
    link = tmp_path / "by-id"
    link.symlink_to(port)
    assert lock_file(str(link)) == lock_file(port)
    with hold(port), pytest.raises(BoardBusyError), hold(str(link)):
        pytest.fail("two have the board")


def test_different_ports_are_different_boards(port: str) -> None:
    others = [f"{port}1", "socket://bench:1", "socket://bench:2", "/dev/a-b", "/dev/a/b"]
    assert len({lock_file(name) for name in (port, *others)}) == 6
    with hold(port), hold(others[1]), hold(others[2]):
        pass


def test_all_users_of_the_computer_may_lock(port: str) -> None:
    with hold(port):
        assert lock_file(port).stat().st_mode & 0o777 == 0o666


def test_a_lock_that_cannot_be_opened_is_told(port: str) -> None:
    lock_file(port).symlink_to("/etc/passwd")
    with pytest.raises(DeviceError, match="cannot open lock file"), hold(port):
        pytest.fail("followed a link")
