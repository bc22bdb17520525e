"""One user of a board at a time, over all programs of this computer: a locked file for each port."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final

from uaccel.errors import DeviceError

POLL_SECONDS: Final = 0.1
SHOWN: Final = 80
FOR_ALL: Final = 0o666


class BoardBusyError(DeviceError):
    """Somebody else has the board."""


@contextmanager
def hold(port: str, *, wait: float = 0.0, user: str = "") -> Iterator[None]:
    """Keep the board at ``port`` to oneself; others may take up to ``wait`` seconds to let go of it.

    ``user`` is what they are told who has it. The lock ends with the process, however that ends. A process that was
    started by one that has the board has it too: a test that holds it may call ``uaccel run``.
    """
    file = lock_file(port)
    descriptor = _open(file)
    try:
        if not _lock(descriptor, port, wait):
            yield
            return
        _note(descriptor, user or " ".join(sys.argv))
        try:
            yield
        finally:
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def hold_if_known(port: str | None) -> AbstractContextManager[None]:
    """The same for a board whose port may not be known: that one nobody can be kept off."""
    return hold(port) if port else nullcontext()


def lock_file(port: str) -> Path:
    """The same one by whatever name the port is called. It stays when nobody holds it."""
    device = port.partition("?")[0] if "://" in port else os.path.realpath(port)
    name = "".join(char if char.isalnum() else "-" for char in device)[-40:]
    number = hashlib.sha256(device.encode()).hexdigest()[:12]
    return Path(tempfile.gettempdir()) / f"uaccel-{number}-{name.strip('-')}.lock"


def _open(file: Path) -> int:
    """Made by whoever comes first, for all users of the computer."""
    try:
        while True:
            with suppress(FileNotFoundError):
                return os.open(file, os.O_RDWR | os.O_NOFOLLOW)
            with suppress(FileExistsError):
                descriptor = os.open(file, os.O_RDWR | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL, FOR_ALL)
                os.fchmod(descriptor, FOR_ALL)
                return descriptor
    except OSError as error:
        raise DeviceError(f"cannot open lock file {file}: {error.strerror}; see who owns it") from error


def _lock(descriptor: int, port: str, wait: float) -> bool:
    """False where a process has it that this one descends from."""
    deadline = time.monotonic() + wait
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if _holding_process(descriptor) in tuple(_ancestors()):
                return False
            if time.monotonic() >= deadline:
                waited = f", also after {wait:g} s" if wait else ""
                raise BoardBusyError(
                    f"the board at {port} is in use by {_holder(descriptor)}{waited}; try again when that has ended"
                ) from None
            time.sleep(POLL_SECONDS)


def _note(descriptor: int, user: str) -> None:
    text = json.dumps({"pid": os.getpid(), "user": user, "since": time.strftime("%H:%M:%S")})
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _read_note(descriptor: int) -> Any:
    return json.loads(os.pread(descriptor, 1 << 16, 0))


def _holding_process(descriptor: int) -> int | None:
    try:
        return int(_read_note(descriptor)["pid"])
    except (ValueError, KeyError, TypeError):
        return None


def _ancestors() -> Iterator[int]:
    """The processes that this one was started by, as far as Linux tells."""
    process = os.getppid()
    while process > 0:
        yield process
        try:
            status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        process = int(status.rpartition(")")[2].split()[1])


def _holder(descriptor: int) -> str:
    try:
        note = _read_note(descriptor)
        user = " ".join(str(note["user"]).split())
        short = user if len(user) <= SHOWN else user[: SHOWN - 3] + "..."
        return f"process {int(note['pid'])} ({short}) since {note['since']}"
    except (ValueError, KeyError, TypeError):
        return "another program"
