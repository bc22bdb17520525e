"""What TVM refuses, told in one line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Final


class TvmRefusalError(Exception):
    """TVM refused to lower something; the text is the last line of its message, where people can read it."""


UNKNOWN: Final = "TVM cannot express it for these types, shapes and options"
_INTERNALS: Final = re.compile(
    r"#|::|->|==|0x|__|<class|\b[TR]\.|\b(?:tvm|tirx?|relax|numpy|self|assert\w*|NoneType|InternalError|Metadata)\b|"
    r"Check failed|has no attribute|(?:positional|keyword) argument|object is not|bytes-like|int\(\)|\w+Expr\b|\bPrim"
)
"""What only somebody who knows TVM's code can read."""


def plain(text: str) -> str:
    """A reason in words as it is; of TVM's internals nothing but that it refuses."""
    return UNKNOWN if " " not in text.strip() or _INTERNALS.search(text) else text


@contextlib.contextmanager
def refusals(kind: type[Exception] = TvmRefusalError) -> Iterator[None]:
    """Whatever TVM raises inside as one kind of error: it has a dozen unrelated types, assertions among them."""
    try:
        yield
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise kind(plain(lines[-1] if lines else "")) from error
