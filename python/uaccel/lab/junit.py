"""Results as JUnit XML, which servers of continuous integration read: a test case for each row."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from uaccel.basics.files import write_atomically
from uaccel.lab.expected import Behind
from uaccel.lab.work import FAILED, WRONG, Result

OPTION = "--junit"
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, however it is escaped."""


def write_junit(path: Path, name: str, results: Sequence[Result], worse: Sequence[Behind]) -> None:
    """``name`` of the suite; a row that is wrong or behind is a failure, one that did not run is an error."""
    text = ET.tostring(_suites(name, results, worse), encoding="utf-8", xml_declaration=True)

    def write(stream: IO[bytes]) -> None:
        stream.write(text + b"\n")

    write_atomically(path, write, OPTION)


def _suites(name: str, results: Sequence[Result], worse: Sequence[Behind]) -> ET.Element:
    behind: dict[str, list[Behind]] = {}
    for entry in worse:
        behind.setdefault(entry.title, []).append(entry)
    cases = [_case(name, result, behind.get(result.row.title, ())) for result in results]
    totals = {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "time": f"{sum(result.took for result in results):.3f}",
    }
    suites = ET.Element("testsuites", totals)
    ET.SubElement(suites, "testsuite", {"name": _clean(name), **totals}).extend(cases)
    return suites


def _case(suite: str, result: Result, behind: Sequence[Behind]) -> ET.Element:
    board = Path(result.row.board).stem.replace(".", "_")
    words = {"classname": f"{suite}.{board}", "name": result.row.title, "time": f"{result.took:.3f}"}
    case = ET.Element("testcase", {key: _clean(value) for key, value in words.items()})
    if result.status == FAILED:
        _say(case, "error", result.status, result.error, result.log)
    elif result.status == WRONG:
        _say(case, "failure", result.status, result.error, result.log)
    elif behind:
        _say(case, "failure", "behind", str(behind[0]), "\n".join(map(str, behind)))
    return case


def _say(case: ET.Element, kind: str, type_: str, message: str, log: str) -> None:
    told = ET.SubElement(case, kind, {"type": type_, "message": _clean(message)})
    told.text = _clean(log or message)


def _clean(text: str) -> str:
    """With control characters as Python writes them."""
    return _FORBIDDEN.sub(lambda match: ascii(match[0])[1:-1], text)
