"""How far a build is: counted by what it writes, with each generator of CMake."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from uaccel.build.object_cache import EVERY, counted, objects_of

LIST = "cmake_minimum_required(VERSION 3.16)\nproject(p C)\nadd_library(one a.c b.c)\nadd_executable(two m.c)\n"
SOURCES = {"a.c": "int a(void) { return 1; }\n", "b.c": "typedef int b;\n", "m.c": "int main(void) { return 0; }\n"}


def configured(folder: Path, generator: str) -> Path:
    (folder / "CMakeLists.txt").write_text(LIST)
    for name, text in SOURCES.items():
        (folder / name).write_text(text)
    build = folder / "build"
    subprocess.run(["cmake", "-S", folder, "-B", build, "-G", generator], check=True, capture_output=True)
    return build


@pytest.mark.parametrize(("generator", "program"), [("Ninja", "ninja"), ("Unix Makefiles", "make")])
def test_the_objects_are_those_that_are_built(generator: str, program: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    build = configured(tmp_path, generator)
    wanted = objects_of(build)
    assert sorted(path.name.partition(".")[0] for path in wanted) == ["a", "b", "m"]
    assert not any(path.exists() for path in wanted)
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    assert all(path.is_file() for path in wanted)


def test_it_is_told_while_it_lasts(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    rules = tmp_path / "build.ninja"
    with counted(tmp_path, lambda done, total: told.append((done, total))):
        time.sleep(2 * EVERY)
        assert told == []  # not configured yet
        rules.write_text("build a.o: CC a.c\nbuild x/b.o: CC b.c || order\nbuild all: phony a.o\n")
        (tmp_path / "a.o").touch()
        end = time.monotonic() + 10
        while (1, 2) not in told and time.monotonic() < end:
            time.sleep(EVERY / 4)
    assert (1, 2) in told
    seen = len(told)
    time.sleep(2 * EVERY)
    assert len(told) == seen


def test_a_build_that_fails_ends_it(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no compiler"), counted(tmp_path, lambda done, total: None):
        raise RuntimeError("no compiler")
