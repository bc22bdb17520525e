"""Says as text what came of a job at a worker, and reads such text as data, whoever wrote it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from uaccel.errors import need
from uaccel.runner.sweep.pool import ATTEMPTS
from uaccel.runner.sweep.row_result import BoardFailed
from uaccel.util.files import parse_json
from uaccel.util.form import OBJECT, TEXT, Maybe, Value, complaint

LONGEST: Final = 1 << 26  # Characters of an answer, at most: what a check of a test returns holds its outputs.


@dataclass(frozen=True)
class Lost:
    """Says what a job raised, or how its process ended."""

    failure: str
    log: str = ""
    attempts: int = 1


_COUNT: Final = Value(f"a number from 1 to {ATTEMPTS}", lambda value: type(value) is int and 1 <= value <= ATTEMPTS)
# One of the three is there.
_FORM: Final = {
    "result": Maybe(OBJECT),
    "board": Maybe(TEXT),
    "lost": Maybe({"failure": TEXT, "log": TEXT, "attempts": _COUNT}),
}


def answer_of(found: Any) -> str:
    """Returns an answer: of a result as JSON, of :class:`BoardFailed` or of :class:`Lost`."""
    lost, board = isinstance(found, Lost), isinstance(found, BoardFailed)
    told = {
        "result": None if lost or board else found,
        "board": found.error if board else None,
        "lost": asdict(found) if lost else None,
    }
    text = json.dumps(told)
    need(len(text) <= LONGEST, f"a result of {len(text):,} characters; at most {LONGEST:,} are taken", ValueError)
    return text


def read_answer(text: Any, paths: Mapping[str, str]) -> Any:
    """Returns what an answer tells, with the paths in place of their marks; ValueError for what is none."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise ValueError(f"it is no text of at most {LONGEST:,} characters")
    told = parse_json(text)
    wrong = complaint(told, _FORM)
    need(not wrong, wrong, ValueError)
    told = substitute_paths(told, paths)
    json.dumps(told, ensure_ascii=False).encode()  # UnicodeEncodeError, a ValueError, for half of a character
    found = [name for name in _FORM if told[name] is not None]
    if len(found) != 1:
        raise ValueError(f"it tells {' and '.join(found) or 'nothing'}; wanted one of {', '.join(_FORM)}")
    if told["board"] is not None:
        return BoardFailed(told["board"])
    lost = told["lost"]
    return told["result"] if lost is None else Lost(lost["failure"], lost["log"], lost["attempts"])


def substitute_paths(data: Any, words: Mapping[str, str]) -> Any:
    """Replaces words of JSON data wherever they occur in its text, in messages too.

    The longest go first, so that a path is not replaced by one that it begins with. Words are compared as JSON escapes
    them, without the quotes around them."""
    text = json.dumps(data)
    for old in sorted(words, key=len, reverse=True):
        text = text.replace(json.dumps(old)[1:-1], json.dumps(words[old])[1:-1])
    return json.loads(text)
