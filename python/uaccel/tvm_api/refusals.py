"""What TVM refuses, told in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class TvmRefusalError(Exception):
    """TVM refused to lower something; the text is the last line of its message."""


@contextlib.contextmanager
def refusals(kind: type[Exception] = TvmRefusalError, before: str = "") -> Iterator[None]:
    """Whatever TVM raises inside as one kind of error: it has a dozen unrelated types, assertions among them."""
    try:
        yield
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise kind(f"{before}{lines[-1] if lines else type(error).__name__}") from error
