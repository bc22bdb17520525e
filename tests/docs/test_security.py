"""SECURITY.md: its bounds are those of the code, and the tests that it names are there."""

from __future__ import annotations

import re

import pytest
from api_server import archive

from support.run.docblocks import ROOT
from uaccel import model
from uaccel.frontend import checks
from uaccel.frontend.onnx import functions, schema
from uaccel.frontend.torch import isolated, reader, serialised
from uaccel.partition.passes import simplify
from uaccel.quantize import calibration
from uaccel.runner import project_run
from uaccel.runner.sweep import answer
from uaccel.session import description, link, protocol_ids, session, transport
from uaccel.util import files

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
TIMEOUTS = link.Timeouts()
MIB, GIB = 1 << 20, 1 << 30
BOUNDS = {
    "PyTorch (`.pt2`)": [
        f"a file of {reader.LARGEST_FILE // GIB} GB; JSON of {serialised.LARGEST_JSON // MIB} MB",
        f"{reader.MOST_NODES:,} operators; {reader.MOST_RECORDS:,} records; {serialised.MOST_DIMENSIONS} dim",
        f"{isolated._SECONDS[0]} seconds of a processor and one more for each {isolated._SECONDS[1] >> 10} KB",
    ],
    "ONNX": [
        f"{checks.LARGEST_FILE // MIB} MB of file and weights, {checks.MOST_NODES:,} nodes",
        f"calls {schema.DEEPEST_CALL} deep, {schema.MOST_OPERANDS} operands of a node, {checks.MOST_RANK} dim",
        f"{checks.LARGEST_TENSOR // GIB} GB a tensor; {checks.MOST_BYTES // MIB} MB of constants",
        f"2^{functions.MOST_WORK.bit_length() - 1} steps for one of them; {checks.MOST_SECONDS:g} seconds on the clock",
        f"{simplify.MOST_SECONDS:g} seconds of a processor for what remains",
    ],
    "TFLite": [
        f"{checks.LARGEST_FILE // MIB} MB, {checks.MOST_NODES:,} operators, {checks.MOST_RANK} dimensions",
        f"{checks.LARGEST_TENSOR // GIB} GB a tensor, {checks.MOST_BYTES // MIB} MB of constants",
        f"{checks.MOST_SECONDS:g} seconds",
    ],
    "Arrays, board files, archives": [
        f"{model.MOST_ARRAYS:,} arrays of {model.LARGEST // GIB} GB together",
        f"{calibration.MOST:,} files, {model.LARGEST // GIB} GB of samples",
        f"integers of 64 bits, {files.DEEPEST} levels",
        f"{archive.MOST_MEMBERS:,} members, {archive.LONGEST_MEMBER // GIB} GB each, "
        f"{archive.LONGEST_ARCHIVE // GIB} GB together",
        f"`metadata.json` ({archive.LONGEST_METADATA // MIB} MB at most)",
    ],
    "A device on the line": [
        f"{TIMEOUTS.operation:g} seconds, and on top the inferences that were asked for",
        f"({TIMEOUTS.run:g} seconds each, from a project {project_run.TIMEOUTS.run:g})",
        f"({TIMEOUTS.slowest:g} bytes a second where its speed is not known)",
        f"given up after {TIMEOUTS.silence:g} seconds",
        f"{link.LARGEST_OBJECT // MIB} MB of an object whose size is not known beforehand, "
        f"{description.LARGEST_DESCRIPTION // MIB} MB of a description, {link.MOST_GAPS} gaps in an object, "
        f"{transport.MOST_ARRIVED // MIB} MB that wait while a write is going on, "
        f"{session.KEPT_LOG_LINES} lines of log, {link.MOST_BOOTS} restarts",
    ],
    "A lab": [f"of at most {answer.LONGEST // MIB} MB, with finite numbers of 64 bits"],
    "A host on the line": [f"at most {protocol_ids.MOST_RUNS:,} times for a request"],
}


def section(title: str) -> str:
    """Its text, in one line."""
    (found,) = re.findall(rf"^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return " ".join(found.split())


@pytest.mark.parametrize("title", BOUNDS)
def test_its_bounds_are_those_of_the_code(title: str) -> None:
    text = section(title)
    assert [bound for bound in BOUNDS[title] if bound not in text] == []


def test_what_it_names_is_there() -> None:
    folder = "tests"
    for name in re.findall(r"`((?:(?:tests|python)/\S+/\w+|test_\w+)\.(?:py|c))`", PAGE):
        folder = name.rpartition("/")[0] or folder  # those without one lie beside the last
        assert (ROOT / folder / name.rpartition("/")[2]).is_file(), name


@pytest.mark.parametrize("title", re.findall(r"^##+ (.*)$", PAGE, re.MULTILINE))
def test_no_section_is_empty(title: str) -> None:
    assert section(title) or title == "Model files"
