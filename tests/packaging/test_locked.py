"""What set-up installs is locked: every package of one version, with the digests of its files."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
SETS = {"setup": ("test",), "test": ("test", "oracles", "dev")}
packaging = pytest.importorskip("packaging.requirements")  # of pytest


def rows(name: str) -> list[tuple[Any, int]]:
    """The requirements of a locked file, each with the number of its digests."""
    text = (ROOT / "scripts" / "locked" / f"{name}.txt").read_text(encoding="utf-8")
    whole = [line.split("--hash=", 1) for line in text.replace("\\\n", " ").splitlines()]
    return [(packaging.Requirement(line[0]), len(re.findall(r"sha256:[0-9a-f]{64}", line[-1]))) for line in whole]


def stated(extras: tuple[str, ...]) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *(row for extra in extras for row in project["optional-dependencies"][extra])]


@pytest.mark.parametrize("name", SETS)
def test_every_package_has_one_version_and_digests(name: str) -> None:
    for requirement, digests in rows(name):
        assert str(requirement.specifier).startswith("=="), requirement
        assert digests > 0, f"{requirement} may be any file"


@pytest.mark.parametrize("name", SETS)
def test_what_pyproject_states_is_locked_within_its_range(name: str) -> None:
    locked = [row for row, _ in rows(name)]
    for text in stated(SETS[name]):
        wanted = packaging.Requirement(text)
        versions = [str(row.specifier)[2:] for row in locked if row.name == wanted.name]
        assert versions, f"{text} is not locked: run scripts/lock.py"
        assert all(wanted.specifier.contains(version, prereleases=True) for version in versions), (text, versions)


def test_both_sets_have_the_same_versions() -> None:
    larger = {(row.name, str(row.specifier)) for row, _ in rows("test")}
    assert {(row.name, str(row.specifier)) for row, _ in rows("setup")} <= larger


UV = """#!/bin/sh
for word; do
    case "$before" in --output-file) echo "solved $word" > "$word"; echo "$word" >> "$SEEN"; esac
    before=$word
done
test "$(wc -l < "$SEEN")" -lt "$FAILS"
"""


@pytest.mark.parametrize(
    ("fails", "said"),
    [
        (0, "lock.py: uv is missing; to get it: pip install uv\n"),
        (1, "lock.py: uv did not solve test.txt; scripts/locked stays as it is\n"),
        (2, "lock.py: uv did not solve setup.txt; scripts/locked stays as it is\n"),
        (3, ""),
    ],
)
def test_all_locked_files_are_renewed_or_none(fails: int, said: str, tmp_path: Path) -> None:
    """``fails``: at which file. Where it is missing, none is begun."""
    scripts, tools = tmp_path / "scripts", tmp_path / "tools"
    tools.mkdir()
    (scripts / "locked").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "lock.py", scripts)
    for name in SETS:
        (scripts / "locked" / f"{name}.txt").write_text("old")
    if fails:
        (tools / "uv").write_text(UV)
        (tools / "uv").chmod(0o755)
    path = f"{tools}:/bin:/usr/bin" if fails else str(tools)
    done = subprocess.run(
        [sys.executable, str(scripts / "lock.py")],
        env={"PATH": path, "SEEN": str(tmp_path / "seen"), "FAILS": str(fails)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (int(fails < 3), said)
    texts = [(scripts / "locked" / f"{name}.txt").read_text() for name in SETS]
    assert all(text.startswith("solved") == (fails == 3) for text in texts), texts
    assert sorted(path.name for path in scripts.iterdir()) == ["lock.py", "locked"]


def test_pip_refuses_a_file_with_another_digest(tmp_path: Path) -> None:
    """One byte more in a wheel, and what a locked file names is not installed."""
    wheel = tmp_path / "locked-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("locked-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: locked\nVersion: 1.0\n")
        archive.writestr("locked-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("locked-1.0.dist-info/RECORD", "")
    wanted = tmp_path / "wanted.txt"
    wanted.write_text(f"locked==1.0 --hash=sha256:{'0' * 64}\n")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps", "--require-hashes"]
    done = subprocess.run(
        [*command, "--find-links", str(tmp_path), "-r", str(wanted)], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
