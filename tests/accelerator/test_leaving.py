"""Code of accelerators that ends the process without a word: to a test run or a script that would look like success."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path

import pytest

from uaccel.accelerator import load_accelerator
from uaccel.accelerator.vendor import staying, vendors
from uaccel.errors import AcceleratorError
from uaccel.util.files import data_dir

REAL = os._exit
LEAVES = "import os\n\n\ndef leave():\n    os._exit(0)\n\n\n"


def starter(folder: Path, begin: str) -> Path:
    made = folder / "starter"
    shutil.copytree(data_dir("accelerator_template"), made, ignore=shutil.ignore_patterns("__pycache__"))
    path = made / "accelerator.py"
    path.write_text(begin + path.read_text())
    return made


@pytest.mark.parametrize("begin", [f"{LEAVES}leave()\n", "from os import _exit\n\n_exit(0)\n"])
def test_an_import_that_ends_the_process(begin: str, tmp_path: Path) -> None:
    with pytest.raises(AcceleratorError, match=r"cannot be imported: SystemExit: os\._exit\(0\) would end everything"):
        load_accelerator(str(starter(tmp_path, begin)))
    assert os._exit is REAL


def test_a_function_that_ends_the_process(tmp_path: Path) -> None:
    load_accelerator(str(starter(tmp_path, LEAVES)))
    modules = [module for name, module in sys.modules.items() if name.startswith("uaccel_accelerator_starter_")]
    leave = next(vars(module)["leave"] for module in modules if "leave" in vars(module))
    with (
        pytest.raises(
            AcceleratorError, match=r"starter: an inner one failed: SystemExit: os\._exit\(0\) .*accelerator\.py"
        ),
        vendors(tmp_path / "starter", "check"),
        vendors(tmp_path / "starter", "an inner one"),
    ):
        leave()
    assert os._exit is REAL


def test_calls_in_two_threads_end_in_any_order() -> None:
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with staying():
            inside.set()
            leave.wait(30)

    thread = threading.Thread(target=other)
    with staying():
        thread.start()
        assert inside.wait(30)
    leave.set()
    thread.join()
    assert os._exit is REAL


def test_a_process_that_an_accelerator_forks_off_ends_as_it_asks() -> None:
    with staying():
        child = os.fork()
        if child == 0:
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
