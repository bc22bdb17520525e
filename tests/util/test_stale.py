"""What a kept result was made of is changed, thing by thing, and the result is made anew."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cli.test_broken_accelerators import GOLDEN, own_arithmetic
from uaccel.runner.options import ProjectRunOptions
from uaccel.runner.prepare import prepare
from uaccel.util.cache import Cache
from uaccel.util.reads import Reads, not_seen, still_true
from util.test_cached_runs import JUDGES, Told, request, run, vendor


@dataclass(frozen=True)
class Case:
    """An accelerator whose description has this ``code``; what it reads is there ``before``, and changes."""

    code: str
    change: Callable[[Path], object]
    before: Callable[[Path], object] = lambda folder: None


def _variable(value: str | None) -> Callable[[Path], object]:
    """Sets the variable to what the test restores."""
    return lambda _folder: os.environ.pop("VENDOR", None) if value is None else os.environ.update(VENDOR=value)


def _text(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def _gone(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def _link(name: str, to: str) -> Callable[[Path], object]:
    def linked(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(folder / to)

    return linked


CASES = {
    "a file that it opens": Case("open(PLACE / 'numbers').read()", _text("numbers", "2"), _text("numbers", "1")),
    "a file that it opens by its number": Case(
        "os.read(os.open(PLACE / 'numbers', os.O_RDONLY), 9)", _text("numbers", "2"), _text("numbers", "1")
    ),
    "a file that it looks for and does not find": Case("(PLACE / 'numbers').exists()", _text("numbers", "1")),
    "a file that it cannot open": Case("try: open(PLACE / 'numbers')\nexcept OSError: pass", _text("numbers", "1")),
    "a file that goes": Case("os.path.exists(PLACE / 'numbers')", _gone("numbers"), _text("numbers", "1")),
    "the time of a file": Case(
        "os.stat(PLACE / 'numbers').st_mtime",
        lambda folder: os.utime(folder / "numbers", (1, 1)),
        _text("numbers", "1"),
    ),
    "where a link leads": Case("os.readlink(PLACE / 'link')", _link("link", "b"), _link("link", "a")),
    "a folder that it lists": Case("os.listdir(PLACE)", _text("more", "")),
    "files that it finds by a pattern": Case("list(PLACE.glob('*.txt'))", _text("more.txt", "")),
    "a variable": Case("os.environ['VENDOR']", _variable("2"), _variable("1")),
    "a variable that is not set": Case("os.environ.get('VENDOR')", _variable("1"), _variable(None)),
    "a variable asked for by its bytes": Case("os.environb.get(b'VENDOR')", _variable("1"), _variable(None)),
    "every variable": Case("dict(os.environ)", _variable("2"), _variable("1")),
    "a module elsewhere": Case(
        "import vendors_numbers", _text("vendors_numbers.py", "A = 22"), _text("vendors_numbers.py", "A = 1")
    ),
    "a module that another one hides": Case(
        "try: import vendors_others\nexcept ImportError: pass", _text("vendors_others.py", "A = 1")
    ),
    "what a check asks for": Case(
        "def check(region):\n    return None if (PLACE / 'numbers').exists() else was(region)\n"
        "was = ACCELERATOR.operations[0].check\n"
        "ACCELERATOR = replace(ACCELERATOR, operations=(replace(ACCELERATOR.operations[0], check=check), "
        "*ACCELERATOR.operations[1:]))",
        _text("numbers", "1"),
    ),
}


def described(tmp_path: Path, code: str) -> Path:
    """An accelerator of a vendor's whose description ends with this code."""
    folder, elsewhere = vendor(tmp_path), tmp_path / "elsewhere"
    elsewhere.mkdir()
    begins = (
        f"\nimport os\nfrom dataclasses import replace\nfrom pathlib import Path\nPLACE = Path({str(elsewhere)!r})\n"
    )
    with (folder / "accelerator.py").open("a") as description:
        description.write(f"{begins}{code}\n")
    return folder


@pytest.fixture
def restored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VENDOR", "0")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    for name in ("vendors_numbers", "vendors_others"):
        sys.modules.pop(name, None)


@pytest.mark.sample(2)
@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_a_description_reads_is_part_of_what_is_kept(case: Case, tmp_path: Path) -> None:
    cache, folder = Cache(tmp_path / "kept"), described(tmp_path, case.code)
    wanted = replace(request(accelerators=(str(folder),)), wishes=ProjectRunOptions())

    def compiles() -> bool:
        told = Told()
        prepare(wanted, told, cache)
        return "import" in told.steps

    case.before(tmp_path / "elsewhere")
    assert (compiles(), compiles()) == (True, False)
    case.change(tmp_path / "elsewhere")
    assert (compiles(), compiles()) == (True, False)


UNSEEN = {
    "a program": "import subprocess; subprocess.run(['true'])",
    "a shell": "os.system('true')",
    "a library": "import ctypes; ctypes.CDLL(None)",
    "a network": "import socket; s = socket.socket(socket.AF_UNIX)\ntry: s.connect('/nowhere')\nexcept OSError: pass",
}


@pytest.mark.sample(1)
@pytest.mark.usefixtures("restored")
@pytest.mark.parametrize("code", UNSEEN.values(), ids=UNSEEN)
def test_what_cannot_be_recorded_is_not_kept(code: str, tmp_path: Path) -> None:
    cache, folder = Cache(tmp_path / "kept"), described(tmp_path, code)
    wanted = replace(request(accelerators=(str(folder),)), wishes=ProjectRunOptions())
    for _ in range(2):
        told = Told()
        assert prepare(wanted, told, cache).key is None
        assert "import" in told.steps


def test_a_file_that_changes_while_it_is_read_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    path.write_text("1")
    with Reads() as reads:
        path.read_text()
        os.truncate(path, 0)  # as another process would do it
    assert not_seen(reads.rows) == f"{path}, which changed meanwhile"
    assert not still_true(reads.rows)


def test_what_a_computation_writes_itself_is_no_part_of_it(tmp_path: Path) -> None:
    with Reads() as reads:
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "it").write_text("1")
        (tmp_path / "made" / "it").read_text()
        (tmp_path / "alone").write_text("1")
        (tmp_path / "alone").read_text()
    assert not [row for row in reads.rows if "made" in row or "alone" in row]


# What the firmware is built from, besides the files of the accelerator's folder.


def _append(path: Path, line: str) -> None:
    path.write_text(f"{path.read_text()}\n{line}\n")


def _device_behind_a_link(folder: Path) -> None:
    (folder / "device").rename(folder.parent / "device")
    (folder / "device").symlink_to("../device")


def _header_by_its_path(folder: Path) -> None:
    (folder.parent / "far.h").write_text("/* one */\n")
    _append(folder / "device" / "matrix8_output.c", f'#include "{folder.parent / "far.h"}"')


def _header_beside_another(folder: Path) -> None:
    (folder.parent / "far.h").write_text('#include "farther.h"\n')
    (folder.parent / "farther.h").write_text("/* one */\n")
    _append(folder / "driver" / "matrix8.h", f'#include "{folder.parent / "far.h"}"')


BUILT = {
    "a device behind a link": (_device_behind_a_link, "device/matrix8_output.c"),
    "a header by its path": (_header_by_its_path, "far.h"),
    "a header beside that one": (_header_beside_another, "farther.h"),
}


@pytest.mark.sample(1)
@pytest.mark.parametrize(("before", "changed"), BUILT.values(), ids=BUILT)
def test_what_firmware_is_built_from_is_part_of_it(
    before: Callable[[Path], None], changed: str, tmp_path: Path
) -> None:
    cache, folder = Cache(tmp_path / "kept"), vendor(tmp_path)
    before(folder)
    wanted = replace(request(accelerators=(str(folder),)), wishes=ProjectRunOptions())

    def builds() -> bool:
        return "build the firmware" in run(wanted, cache)[1]

    assert (builds(), builds()) == (True, False)
    _append(tmp_path / changed, "/* two */")
    assert (builds(), builds()) == (True, False)


@pytest.mark.slow
def test_firmware_that_asks_whether_a_header_is_there_is_not_kept(tmp_path: Path) -> None:
    cache, folder = Cache(tmp_path / "kept"), vendor(tmp_path)
    _append(folder / "device" / "matrix8_output.c", f'#if __has_include("{tmp_path}/far.h")\n#error far\n#endif')
    wanted = replace(request(accelerators=(str(folder),)), wishes=ProjectRunOptions())
    assert all("build the firmware" in run(wanted, cache)[1] for _ in range(2))


@pytest.mark.slow
def test_what_a_golden_function_reads_is_part_of_the_verdict(tmp_path: Path) -> None:
    """The device adds 40,000, and a file says so; the compilation never reads it."""
    told = tmp_path / "told"
    told.write_text("40000")
    golden = GOLDEN.replace("{}", f"int(open({str(told)!r}).read())")
    wanted = request(accelerators=(str(own_arithmetic(tmp_path / "vendors", golden=golden)),))
    cache = Cache(tmp_path / "kept")
    assert [JUDGES in run(wanted, cache)[1] for _ in range(2)] == [True, False]
    told.write_text("39999")
    done, steps = run(wanted, cache)
    assert JUDGES in steps
    assert done.complaint.startswith("verification failed")
