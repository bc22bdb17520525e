"""The two pipes to the client, and waiting that ends when the client does."""

from __future__ import annotations

import json
import logging
import os
import select
import time
from typing import Any, Iterable, NamedTuple

from .errors import ClientGoneError, InvalidRequestError

CHUNK = 1 << 16
LONGEST_LINE = 1 << 26
LONGEST_WAIT = 1e6
"""Seconds: the system's calls take no more than some weeks."""
GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Deadline:
    """So many seconds from now; ``None``: never."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + min(seconds, LONGEST_WAIT)

    def left(self) -> float | None:
        return None if self._end is None else max(0.0, self._end - time.monotonic())


class Ready(NamedTuple):
    """The descriptors that will not wait, or that have ended."""

    reading: set[int]
    writing: set[int]


class Connection:
    """To one client."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._arrived = bytearray()
        self._ended = False

    def next_line(self) -> bytes | None:
        """One request without its newline; None after the last."""
        searched = 0
        while True:
            end = self._arrived.find(b"\n", searched)
            if end >= 0 or (self._ended and self._arrived):
                line = bytes(self._arrived[: end if end >= 0 else len(self._arrived)])
                del self._arrived[: len(line) + 1]
                logging.debug("request %r", line)
                return line
            if self._ended:
                return None
            if len(self._arrived) > LONGEST_LINE:
                raise InvalidRequestError(f"request: longer than {LONGEST_LINE} bytes")
            searched = len(self._arrived)
            data = os.read(self._read_fd, CHUNK)
            self._ended = not data
            self._arrived += data

    def send(self, message: dict[str, Any]) -> None:
        """One object, on one line."""
        line = json.dumps(message).encode()
        logging.debug("reply %r", line)
        rest = memoryview(line + b"\n")
        try:
            while rest:
                rest = rest[os.write(self._write_fd, rest) :]
        except OSError as error:
            raise ClientGoneError from error

    def wait(self, reading: Iterable[int], writing: Iterable[int], deadline: Deadline) -> Ready:
        """The descriptors that are ready; none when time is up. Ends with an error as soon as the client has gone."""
        wanted: dict[int, int] = {}
        for descriptors, event in ((reading, select.POLLIN), (writing, select.POLLOUT)):
            for descriptor in descriptors:
                wanted[descriptor] = wanted.get(descriptor, 0) | event
        poll = select.poll()
        poll.register(self._write_fd, 0)  # nothing but that nobody reads there any more
        for descriptor, events in wanted.items():
            poll.register(descriptor, events)
        left = deadline.left()
        seen = dict(poll.poll(None if left is None else left * 1000))
        if seen.pop(self._write_fd, 0) & GONE:
            raise ClientGoneError
        return Ready(
            {descriptor for descriptor in reading if seen.get(descriptor, 0) & (select.POLLIN | GONE)},
            {descriptor for descriptor in writing if seen.get(descriptor, 0) & (select.POLLOUT | GONE)},
        )
