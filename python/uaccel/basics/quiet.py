"""Silence for other people's libraries: what they say on the way is for their authors, not for our users."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator

_STREAMS = (1, 2)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Warnings, logs, and whatever Python or C writes to stdout and stderr, go nowhere."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            _closed_streams(),
            contextlib.redirect_stderr(io.StringIO()),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _closed_streams() -> Iterator[None]:
    """Of what C writes, too; a stream that is closed stays so."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    kept = {}
    try:
        for number in _STREAMS:
            with contextlib.suppress(OSError):
                kept[number] = os.dup(number)
                os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in kept.items():
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
