"""The process that reads a file can compute and nothing else, and whatever becomes of it is one line to the user."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.models.exported import Net, exported, random, save
from support.models.torch_archives import PROGRAM, changed, inserted, read_records, write_records
from uaccel.errors import InternalError, ModelError
from uaccel.frontend.torch import isolated
from uaccel.frontend.torch.isolated import import_isolated

FORBIDDEN = {
    "os.system('touch canary')": "os.system",
    "subprocess.run(['touch', 'canary'])": "subprocess.Popen",
    "os.fork()": "os.fork",
    "os.execv('/bin/sh', ['sh'])": "os.exec",
    "os.posix_spawn('/bin/sh', ['sh'], {})": "os.posix_spawn",
    "socket.socket()": "socket.__new__",
    "socket.getaddrinfo('localhost', 80)": "socket.getaddrinfo",
    "open('canary', 'w')": "'canary'",
    "open('kept', 'r+')": "'kept'",
    "os.open('canary', os.O_CREAT)": "'canary'",
    "os.remove('kept')": "os.remove",
    "os.rename('kept', 'canary')": "os.rename",
    "os.mkdir('canary')": "os.mkdir",
    "os.symlink('kept', 'canary')": "os.symlink",
    "os.chmod('kept', 0)": "os.chmod",
    "os.kill(os.getppid(), 9)": "os.kill",
    "pickle.loads(b'cos\\nsystem\\n(S\"true\"\\ntR.')": "pickle.find_class",
    "shutil.rmtree('.')": "shutil.rmtree",
}
START = """import json, os, pickle, shutil, signal, socket, subprocess, sys
from uaccel.frontend.torch.sandbox import confine
"""


def confined(code: str, folder: Path, memory: int = 1 << 28, seconds: int = 20) -> subprocess.CompletedProcess[str]:
    program = f"{START}confine({memory}, {seconds})\n{code}"
    path = {"PYTHONPATH": ":".join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env=path, capture_output=True, text=True, timeout=300, check=False
    )


def test_it_may_do_nothing_but_compute(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    code = f"""said = {{}}
for act in {list(FORBIDDEN)!r}:
    try:
        exec(act)
    except PermissionError as error:
        said[act] = str(error)
print(json.dumps(said))
"""
    done = confined(code, tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert {act: text.split(": ")[-1] for act, text in said.items()} == FORBIDDEN
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept"]
    assert (tmp_path / "kept").read_text() == "kept"


def test_it_may_read_and_compute(tmp_path: Path) -> None:
    done = confined("import email.message; print(sum(range(10)), file=sys.stdout)", tmp_path)
    assert (done.returncode, done.stdout) == (0, "45\n"), done.stderr


def test_its_memory_is_limited(tmp_path: Path) -> None:
    done = confined("bytearray(1 << 30)", tmp_path)
    assert done.stderr.splitlines()[-1] == "MemoryError"


def test_its_time_is_limited(tmp_path: Path) -> None:
    assert confined("while True: pass", tmp_path, seconds=1).returncode == -signal.SIGXCPU


def test_what_is_open_does_not_grow(tmp_path: Path) -> None:
    code = f"stream = open('kept', 'wb', 0)\n{START}confine(1 << 28, 20)\nstream.write(b'more')"
    path = {"PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.stderr.splitlines()[-1] == "OSError: [Errno 27] File too large"


CRASH = "crashes PyTorch or TVM, which read it (signal 11); give what torch.export.save"
ENDED = f"cannot be read: a process of {sys.executable} for it ended with status"
LIMITS = "takes more than 1024 MB or 40 seconds of a processor to read; no model for a microcontroller does: export"
ENDS = {
    "import os; os.kill(os.getpid(), 11)": CRASH,
    "import os; os.kill(os.getpid(), 24)": LIMITS,
    "import time; time.sleep(600)": LIMITS,
    "import sys; sys.exit(3)": f"{ENDED} 3; install its build",
    "print('hello, world')": f"{ENDED} 0; install its build",
    "import sys; [sys.stdout.write('x' * 9999) for _ in iter(int, 1)]": LIMITS,
}


@pytest.mark.parametrize("program", ENDS)
def test_how_it_may_end(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(b"PK")
    monkeypatch.setattr(isolated, "_START", program)
    monkeypatch.setattr(isolated, "_PATIENCE", 0.1)
    monkeypatch.setattr(isolated, "_DYING", 0.5)
    with pytest.raises(ModelError) as caught:
        import_isolated(path, {})
    assert str(caught.value).startswith(f"{path} {ENDS[program]}")


def test_a_bug_of_ours_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.pt2"
    path.write_bytes(b"PK")
    answer = (
        "import sys; from uaccel.frontend.torch.sandbox import write_frame; sys.path[:] = sys.argv[1:]\n"
        "write_frame(sys.stdout.buffer, {'bug': 'Traceback\\nKeyError: 7'}, [])"
    )
    monkeypatch.setattr(isolated, "_START", f"import sys; sys.path[:] = sys.argv[1:]\n{answer}")
    with pytest.raises(InternalError, match=r"model\.pt2 failed: KeyError: 7$"):
        import_isolated(path, {})


def made_large(path: Path, extent: int, times: int) -> Path:
    """Products of matrices of ones, which depend on nothing and so are computed while importing."""
    save(exported(Net(lambda x: x + 1).eval(), [random(2, 2)]), path)
    records = read_records(path)

    def change(document: Any) -> None:
        sizes = {"as_ints": [extent, extent]}
        declared = document["graph_module"]["graph"]["tensor_values"]
        for number in reversed(range(times)):
            operand = {"as_tensor": {"name": f"m{number}"}}
            inserted(
                document,
                "torch.ops.aten.mm.default",
                ("self", operand),
                ("mat2", operand),
                like="x_0",
                name=f"m{number + 1}",
            )
            del declared[f"m{number + 1}"]
        inserted(
            document,
            "torch.ops.aten.full.default",
            ("size", sizes),
            ("fill_value", {"as_float": 0.5}),
            like="x_0",
            name="m0",
        )
        del declared["m0"]
        last = document["graph_module"]["graph"]["nodes"][-1]
        inserted(
            document,
            "torch.ops.aten.mean.default",
            ("self", {"as_tensor": {"name": f"m{times}"}}),
            like="x_0",
            name="mean",
        )
        nodes = document["graph_module"]["graph"]["nodes"]
        nodes.insert(len(nodes) - 2, nodes.pop(0))
        last["inputs"][1]["arg"] = {"as_tensor": {"name": "mean"}}
        last["target"] = "torch.ops.aten.add.Tensor"
        del declared["mean"]

    return write_records(path, records | {PROGRAM: changed(records[PROGRAM], change)})


@pytest.mark.slow
def test_a_file_cannot_fill_the_memory(tmp_path: Path) -> None:
    path = made_large(tmp_path / "model.pt2", 23_000, 0)
    with pytest.raises(ModelError, match=r"cannot compute it from its constants: .*allocate memory"):
        import_isolated(path, {})


@pytest.mark.slow
def test_a_file_cannot_keep_a_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made_large(tmp_path / "model.pt2", 3_000, 100)
    monkeypatch.setattr(isolated, "_SECONDS", (3, 1 << 18))
    with pytest.raises(ModelError, match="takes more than 1024 MB or 3 seconds of a processor to read"):
        import_isolated(path, {})
