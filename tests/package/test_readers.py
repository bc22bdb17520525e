"""All files that come from elsewhere are opened by ``uaccel.util.incoming``, which bounds them; nothing else opens any.

Functions that read stand here with the reason why what they read is bounded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest

from package.test_layers import PACKAGE, sources

OPENER: Final = "util/incoming.py"
METHODS: Final = {"open", "read_bytes", "read_text", "fdopen", "readlink"}
# Functions that take a path, or a stream that may be a path.
FUNCTIONS: Final = {
    *("np.load", "np.fromfile", "np.memmap", "np.loadtxt", "np.genfromtxt", "np.lib.format.open_memmap"),
    *("zipfile.ZipFile", "tarfile.open", "tarfile.TarFile", "gzip.open", "json.load", "tomllib.load", "csv.reader"),
    *("shutil.copy", "shutil.copy2", "shutil.copyfile", "shutil.copytree", "onnx.load", "ElementTree.parse"),
    *("io.open", "io.FileIO", "codecs.open", "fileinput.input", "linecache.getlines", "runpy.run_path"),
}
LAST: Final = {name.rpartition(".")[2] for name in FUNCTIONS}
MAYBE: Final = re.compile(rf"(?<!incoming)\.({'|'.join(METHODS | LAST)})\(|\bopen\(")
# Other calls that look like it, and why what they open is bounded.
HELD: Final = {
    "board/cmsis_pack.py: archive.open": "a member, of which no more is read than may be",
    "board/cmsis_pack.py: zipfile.ZipFile": "a stream of the opener's",
    "build/archive_reader.py: tarfile.open": "a stream of the opener's",
    "build/project.py: archive.open": "is written",
    "cli/output.py: os.open": "/dev/null",
    "cli/sweep.py: engine.open": "processes",
    "frontend/bundle.py: archive.open": "a member, whose size is checked",
    "frontend/bundle.py: zipfile.ZipFile": "a stream of the opener's, or bytes that were read",
    "frontend/limits.py: Path('/proc/self/statm').read_text": "of the kernel",
    "frontend/tflite/metadata.py: zipfile.ZipFile": "bytes that were read",
    "frontend/torch/reader.py: zipfile.ZipFile": "bytes that were read",
    "frontend/torch/sandbox.py: Path('/proc/self/statm').read_text": "of the kernel",
    "frontend/torch/sandbox_worker.py: os.fdopen": "its pipe",
    "frontend/torch/sandbox_worker.py: os.open": "/dev/null",
    "model.py: archive.open": "a member, whose size is checked",
    "model.py: zipfile.ZipFile": "a stream of the opener's, or one that is written",
    "quantize/calibration.py: image.open": "a stream of the opener's",
    "quantize/quality.py: onnx.load": "written for the quantiser",
    "runner/evaluate.py: self._path.open": "is appended to, once it was read",
    "runner/execute.py: Session.open": "a line, on which every wait ends",
    "runner/runtime_worker.py: os.fdopen": "its pipe",
    "runner/samples.py: csv.reader": "lines that were read",
    "runner/sweep/pool.py: os.open": "is written",
    "runner/sweep/results.py: self.path.open": "is appended to, once it is known as a file",
    "session/board_ports.py: Path(f'/proc/{process}/stat').read_text": "of the kernel",
    "session/board_ports.py: file.read_text": "of the kernel",
    "session/board_ports.py: os.open": "a lock, of which nothing is read",
    "session/connect.py: line.open": "a line, on which every wait ends",
    "session/debug_probe.py: self._session.open": "a probe",
    "session/emulated_board.py: (folder / LOG).open": "is written",
    "session/transport.py: file.read_text": "of the kernel",
    "testing/device_library.py: self.model.open": "a function of a device's model",
    "util/cache.py: (folder / MANIFEST).open": "the cache's own",
    "util/cache.py: (folder / MANIFEST).read_bytes": "the cache's own",
    "util/cache.py: self.path(name).read_bytes": "the cache's own",
    "util/files.py: os.fdopen": "is written",
    "util/reads.py: path.readlink": "a link, which is read as a name",
    "util/traced.py: runpy.run_path": "a generator's own program, in a process of its own",
    "util/files.py: os.open": "/dev/null",
    "util/files.py: tarfile.open": "a stream, of the opener's or written",
    "util/files.py: zipfile.ZipFile": "is written",
    "zoo/known.py: archive.open": "a member, of which no more is read than it should have",
    "zoo/known.py: zipfile.ZipFile": "a stream of the opener's",
}


def readers(source: str) -> Iterator[str]:
    """The name of each call that may open a file."""
    nodes = ast.walk(ast.parse(source)) if MAYBE.search(source) else ()
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == "open":
            yield "open"
        elif isinstance(node.func, ast.Attribute) and node.func.attr in METHODS | LAST:
            name = ast.unparse(node.func)
            if node.func.attr in METHODS or name in FUNCTIONS:
                yield name


def strangers(source: str) -> list[str]:
    return [name for name in readers(source) if not name.startswith("incoming.")]


def test_one_module_opens_what_comes_in() -> None:
    modules = {name: (PACKAGE / name).read_text(encoding="utf-8") for name in sources()}
    found = {f"{name}: {call}" for name, text in modules.items() if name != OPENER for call in strangers(text)}
    assert sorted(found - set(HELD)) == [], "use uaccel.util.incoming"
    assert sorted(set(HELD) - found) == [], "these are gone"


@pytest.mark.parametrize(
    "call",
    ["open(p)", "p.open('rb')", "(a / 'b').read_text()", "os.open(p, 0)", "np.load(p)", "json.load(p)", "tar.open(p)"],
)
def test_readers_are_seen(call: str) -> None:
    assert len(strangers(f"x = {call}\n")) == 1
