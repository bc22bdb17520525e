"""Continuous integration goes red: for a command that fails, whichever it is, and for a skip that nobody allowed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.run.strict import LATER, LIST, ONLY, rows_of

ROOT = Path(__file__).resolve().parents[2]
FAKE = """#!/bin/sh
case " $* " in *" setup "*) mkdir -p .venv/bin; cp "$0" .venv/bin/python;; esac
echo "$(basename "$0") $*" >> "$LOG"
echo "$UACCEL_CI|$UACCEL_LATER|$UACCEL_ONLY|$UACCEL_TOUCHED" >> "$LOG.environment"
test "$(wc -l < "$LOG")" != "$FAILS"
"""
"""In the place of make and of the environment's Python: notes how it was called, and fails at the given call."""
STAGES = [
    "make setup",
    "make demo",
    "make test",
    "make setup-full setup-torch",
    "make test-c-clang",
    "python -m pytest -n 2 --dist worksteal -q -m not slow and not long",
    "python -m pytest -n 2 --dist worksteal -q tests/kernels/test_exact.py -m slow and not long",
    "python -m pytest -n 2 --dist worksteal -q -m touched or not long and (slow or drawn)",
]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """What .ci/run clones: itself, and a test that the last commit touched."""
    folder = tmp_path / "repository"
    (folder / "tests").mkdir(parents=True)
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    (folder / "tests" / "test_it.py").touch()
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "core.hooksPath=/dev/null")
    for words in (("init", "-q"), ("add", "."), (*identity, "commit", "-qm", "it")):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def ended(repository: Path, fails: int) -> tuple[int, list[str], list[str]]:
    """The status of .ci/run, which commands it came to, and what they saw of the environment."""
    folder = repository.parent
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "make").write_text(FAKE)
    (folder / "bin" / "make").chmod(0o755)
    log = folder / f"log{fails}"
    environment = {key: value for key, value in os.environ.items() if key not in (LIST, LATER, ONLY)}
    environment |= {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "LOG": str(log), "FAILS": str(fails)}
    done = subprocess.run(
        [repository / ".ci" / "run"], env=environment, capture_output=True, check=False, timeout=60, text=True
    )
    return done.returncode, log.read_text().splitlines(), (folder / f"{log.name}.environment").read_text().splitlines()


def test_every_tier_is_run_and_strict(repository: Path) -> None:
    status, commands, environment = ended(repository, 0)
    assert (status, commands) == (0, STAGES)
    rows = [line.split("|") for line in environment]
    assert {Path(row[0]).parts[-3:] for row in rows} == {("uaccel", ".ci", "skips.toml")}
    later = {command: row[1] for command, row in zip(commands, rows, strict=True) if row[1]}
    only = {command: row[2] for command, row in zip(commands, rows, strict=True) if row[2]}
    assert (list(later), list(only)) == (["make test"], [STAGES[5]])
    assert [*later.values()] == [*only.values()], "what the first run leaves for later, the second takes up"
    assert [row[3] for row in rows[:-1]] == [""] * (len(STAGES) - 1)
    assert rows[-1][3] == "tests/test_it.py"


@pytest.mark.parametrize("number", range(1, len(STAGES) + 1), ids=lambda number: STAGES[number - 1])
def test_what_fails_ends_it(number: int, repository: Path) -> None:
    status, commands, _ = ended(repository, number)
    assert status != 0
    assert commands == STAGES[:number]


# The plugin, in runs of their own.

HERE = """
from support.run import strict

def pytest_configure(config):
    strict.register(config)

def pytest_collection_modifyitems(config, items):
    strict.keep_only(config, items)
"""
ROWS = """
[[skip]]
reason = "could not import 'brought_later': .*"
later = "must"
why = "-"
[[skip]]
reason = "the case makes no sense"
why = "-"
"""
NEEDS = "import pytest\npytest.importorskip('brought_later')\n"


def run(folder: Path, **environment: str) -> tuple[int, str]:
    """A run of the tests in the folder by two workers, which is strict."""
    plain = {key: value for key, value in os.environ.items() if key not in (LIST, LATER, ONLY)}
    paths = {"PYTHONPATH": f"{folder}:{ROOT / 'tests'}:{ROOT / 'python'}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-p", "xdist", "-p", "no:cacheprovider", "-n", "2", "-q", str(folder)]
    done = subprocess.run(
        command, env=plain | paths | environment, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Two files that need what a helper of theirs cannot import, and a test that is skipped for good."""
    (tmp_path / "conftest.py").write_text(HERE)
    (tmp_path / "list.toml").write_text(ROWS)
    (tmp_path / "helper.py").write_text(NEEDS)
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text("import helper\n\ndef test_it():\n    pass\n")
    inside = "".join(f"    {line}\n" for line in NEEDS.splitlines())
    (tmp_path / "test_three.py").write_text(
        f"def test_lacks():\n{inside}\n"
        "def test_runs():\n    pass\n\n"
        "def test_not():\n    import pytest; pytest.skip('the case makes no sense')\n"
    )
    return tmp_path


def test_what_is_skipped_for_later_runs_then_and_nothing_else_does(suite: Path) -> None:
    told = {LIST: str(suite / "list.toml")}
    later = suite / "build" / "later.txt"
    assert run(suite, **told, **{LATER: str(later)})[0] == 0
    assert later.read_text().split() == ["test_one.py", "test_three.py::test_lacks", "test_two.py"]
    status, said = run(suite, **told, **{ONLY: str(later)})
    assert (status, "test_three.py::test_lacks: could not import 'brought_later'" in said) == (1, True), "still absent"
    (suite / "brought_later.py").touch()
    status, said = run(suite, **told, **{ONLY: str(later)})
    assert (status, "3 passed" in said) == (0, True), said


def test_a_skip_that_is_not_listed_fails_the_run(suite: Path) -> None:
    (suite / "brought_later.py").touch()
    (suite / "test_four.py").write_text("import pytest\n\ndef test_it():\n    pytest.skip('no compiler')\n")
    assert run(suite)[0] == 0
    status, said = run(suite, **{LIST: str(suite / "list.toml")})
    assert status == 1
    assert "test_four.py::test_it: no compiler" in said


def test_the_list_is_well_formed() -> None:
    rows = rows_of(ROOT / ".ci" / "skips.toml")
    assert all(row.why.endswith(".") for row in rows)


# Targets of the Makefile.

LEFT_OUT = {
    "lint": ("lint: skipped: ruff and mypy are not installed", "setup-test"),
    "test-c-clang": ("test-c-clang: skipped: clang is not installed", "setup-full"),
    ".venv/.ready-test": ("setup: not installed; tests that need them are skipped", ".venv/.ready"),
}


@pytest.mark.parametrize("target", LEFT_OUT)
def test_a_target_without_its_tool_says_so_and_fails_continuous_integration(target: str, tmp_path: Path) -> None:
    said, done_before = LEFT_OUT[target]
    (tmp_path / "scripts" / "locked").mkdir(parents=True)
    for name in ("Makefile", "scripts/locked/test.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "bin").mkdir()
    for name in ("make", "sh", "cat"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name) or name)
    for strict, status in (("", 0), ("list", 2)):
        command = ["make", target, f"{LIST}={strict}", "-o", done_before]
        environment = {"PATH": str(tmp_path / "bin")}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert said in done.stdout
        assert done.returncode == status, done.stdout + done.stderr
