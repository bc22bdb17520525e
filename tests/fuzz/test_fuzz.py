"""The C side of the protocol under libFuzzer, with AddressSanitizer and UndefinedBehaviorSanitizer: a bounded run.

A longer one, which keeps what it finds:

    clang ... -fsanitize=fuzzer,address,undefined (the command of ``build``) -o fuzz && ./fuzz tests/fuzz/corpus/server
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.device.device import include_flags, runtime_sources
from uaccel.util.files import data_dir

HERE = Path(__file__).resolve().parent
TARGETS = ("frame", "server")
RUNS = 30_000
SECONDS = 20
STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror", "-g", "-O1", "-DUACCEL_OBSERVE")
SANITIZE = "address,undefined"

each_target = pytest.mark.parametrize("target", TARGETS)


def build(target: str, folder: Path, compiler: str, sanitize: str, *more: Path) -> Path | None:
    """Nothing where this compiler's installation lacks the sanitizers."""
    program = folder / f"fuzz_{target}"
    sources = [data_dir("firmware") / "runtime" / "uaccel_frame.c"] if target == "frame" else runtime_sources()
    files = [str(path) for path in (HERE / f"fuzz_{target}.c", *more, *sources)]
    flags = [*STRICT, f"-fsanitize={sanitize}", "-fno-sanitize-recover=all", *include_flags()]
    done = subprocess.run([compiler, *flags, *files, "-o", str(program)], capture_output=True, text=True, check=False)
    if "cannot find" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    return program


def corpus(target: str) -> list[Path]:
    return sorted((HERE / "corpus" / target).iterdir())


@pytest.mark.sample(1)
@each_target
def test_fuzzing_finds_nothing(target: str, tmp_path: Path) -> None:
    if shutil.which("clang") is None:
        pytest.skip("clang is not installed")
    program = build(target, tmp_path, "clang", f"fuzzer,{SANITIZE}")
    if program is None:
        pytest.skip("clang has no libFuzzer here: install libclang-rt-dev")
    found = tmp_path / "found"
    found.mkdir()
    limits = [f"-runs={RUNS}", f"-max_total_time={SECONDS}", "-seed=1", "-max_len=1200", "-timeout=10"]
    command = [str(program), *limits, f"-artifact_prefix={tmp_path}/", str(found), str(HERE / "corpus" / target)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Done" in done.stderr


@pytest.mark.sample(1)
@each_target
def test_the_corpus_under_another_compiler(target: str, tmp_path: Path) -> None:
    program = build(target, tmp_path, "gcc", SANITIZE, HERE / "replay.c")
    if program is None:
        pytest.skip("gcc has no sanitizers here")
    files = corpus(target)
    assert len(files) > 40
    done = subprocess.run([str(program), *map(str, files)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{len(files)} inputs\n"), done.stderr[-4000:]


@pytest.mark.slow
def test_a_fault_would_be_found(tmp_path: Path) -> None:
    """The same run on a reader that takes a frame for shorter than it is."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    frame = (data_dir("firmware") / "runtime" / "uaccel_frame.c").read_text()
    check = "reader->used < sizeof reader->packet"
    assert check in frame
    broken = tmp_path / "uaccel_frame.c"
    broken.write_text(frame.replace(check, "reader->used < 2 * sizeof reader->packet"))
    sources = [path for path in runtime_sources() if path.name != "uaccel_frame.c"]
    files = [str(path) for path in (HERE / "fuzz_server.c", HERE / "replay.c", broken, *sources)]
    program = tmp_path / "broken"
    command = ["gcc", *STRICT, f"-fsanitize={SANITIZE}", *include_flags(), *files, "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if "cannot find" in built.stderr:
        pytest.skip("gcc has no sanitizers here")
    assert built.returncode == 0, built.stderr
    done = subprocess.run([str(program), *map(str, corpus("server"))], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Sanitizer" in done.stderr or "runtime error" in done.stderr
