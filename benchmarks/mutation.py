"""How many small faults the tests find, where being wrong is silent: faults are planted one at a time.

    python benchmarks/mutation.py --target "frames in C" --most 40     try some, compare with nothing, store nothing
    python benchmarks/mutation.py --most 100 --write                   try some of every target, and store

Each target is a file and the tests that hold it, see ``TARGETS``. Which faults are tried is drawn by the same seed each
time. A fault counts as found where a test fails, the file does not compile, or the tests take five times as long.
Reasons for survivors are those of ``mutation_reasons.json``, by the line and what becomes of it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mutants import Mutant, mutants

ROOT: Final = Path(__file__).resolve().parents[1]
RESULTS: Final = Path(__file__).with_name("mutation.json")
REASONS: Final = Path(__file__).with_name("mutation_reasons.json")
LOADED: Final = ("pytest", "numpy", "hypothesis", "tvm")
"""By this process, so that those with a fault, which are forked off it, need not."""
INCLUDE: Final = ("firmware/include", "firmware/runtime", "firmware/kernels", "tests/support", "tests/c")


@dataclass(frozen=True)
class Target:
    """``tests``: of pytest, or C programs of ``tests/c`` that are linked with the runtime."""

    name: str
    file: str
    tests: tuple[str, ...]

    @property
    def python(self) -> bool:
        return self.file.endswith(".py")


SERVER: Final = ("tests/c/test_server.c", "tests/c/test_server_runs.c")
MEMORY: Final = ("tests/unit/test_memory.py", "tests/unit/test_memory_pools.py", "tests/unit/test_memory_sharing.py")
LINK: Final = ("tests/session/test_link.py", "tests/session/test_misbehaviour.py")
ARCHIVES: Final = ("tests/project/test_metadata.py",)
TARGETS: Final = (
    Target("output stages in C", "firmware/kernels/uaccel_fixedpoint.h", ("tests/c/test_fixedpoint.c",)),
    Target("frames in C", "firmware/runtime/uaccel_frame.c", ("tests/c/test_frame.c", *SERVER)),
    Target("tensors of the server", "firmware/runtime/uaccel_tensors.c", SERVER),
    Target("server", "firmware/runtime/uaccel_server.c", SERVER),
    Target("frames in Python", "python/uaccel/session/frame.py", ("tests/session/test_protocol.py", LINK[0])),
    Target("link", "python/uaccel/session/link.py", LINK),
    Target("placement: first fit", "python/uaccel/memory/firstfit.py", MEMORY),
    Target("placement: exact", "python/uaccel/memory/exact.py", MEMORY),
    Target("placement: check", "python/uaccel/memory/check.py", MEMORY),
    Target("placement: sharing", "python/uaccel/memory/sharing.py", MEMORY),
    Target("archives: metadata", "python/uaccel/project/metadata_form.py", ARCHIVES),
)


def copied(folder: Path) -> Path:
    """The repository as it stands, without what git ignores."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listing.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def passes(target: Target, tree: Path, seconds: float) -> bool:
    child = os.fork()
    if child == 0:
        status = 1
        with suppress(BaseException):
            os.setpgid(0, 0)
            os.chdir(tree)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            status = _pytest(target, tree) if target.python else _c_tests(target, tree)
        os._exit(status)
    end, ended, status = time.monotonic() + seconds, 0, 1
    while not ended and time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
        return False
    return status == 0


def _pytest(target: Target, tree: Path) -> int:
    import pytest

    sys.path[:0] = [str(tree / "python"), str(tree / "tests")]
    sys.dont_write_bytecode = True
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow and not long"]
    return int(pytest.main([*options, *target.tests]))


def _c_tests(target: Target, tree: Path) -> int:
    runtime = [path for path in sorted((tree / "firmware/runtime").glob("*.c")) if path.name != "uaccel_main.c"]
    include = [f"-I{folder}" for folder in INCLUDE]
    for test in target.tests:
        command = [
            "gcc",
            "-std=c99",
            "-O0",
            "-DUACCEL_OBSERVE",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
        ]
        text = (tree / test).read_text()
        needed = runtime if "server_host.h" in text else [path for path in runtime if f'"{path.stem}.h"' in text]
        command += [*include, test, *map(str, needed), "-lm", "-o", "mutated"]
        if subprocess.run(command, check=False).returncode or subprocess.run(["./mutated"], check=False).returncode:
            return 1
    return 0


def tried(target: Target, tree: Path, most: int, reasons: list[dict[str, Any]]) -> dict[str, Any]:
    file, begun = tree / target.file, time.monotonic()
    text = file.read_text()
    if not passes(target, tree, 600):
        raise SystemExit(f"{target.name}: {' '.join(target.tests)} fail without a fault")
    patience = 20 + 5 * (time.monotonic() - begun)
    known = mutants(text, python=target.python)
    drawn = sorted(random.Random(1).sample(known, min(most, len(known))), key=lambda one: one.begin)
    survived: list[Mutant] = []
    for mutant in drawn:
        file.write_text(mutant.of(text))
        survived += [mutant] if passes(target, tree, patience) else []
    file.write_text(text)
    told = [one.told(text) for one in survived]
    for row in told:
        row |= next((known for known in reasons if all(row[key] == known[key] for key in ("was", "becomes"))), {})
    return {
        "file": target.file,
        "tests": list(target.tests),
        "known": len(known),
        "tried": len(drawn),
        "found": len(drawn) - len(survived),
        "equivalent": sum(bool(row.get("equivalent")) for row in told),
        "seconds": round(time.monotonic() - begun),
        "survived": told,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant faults, and count those that tests find.")
    parser.add_argument("--target", default="", help="those whose name has this in it")
    parser.add_argument("--most", type=int, default=40, help="faults of each")
    parser.add_argument("--write", action="store_true", help="store what comes out")
    given = parser.parse_args()
    for name in LOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    stored: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    reasons: list[dict[str, Any]] = json.loads(REASONS.read_text()) if REASONS.exists() else []
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        tree = copied(Path(folder))
        for target in TARGETS:
            if given.target in target.name:
                row = stored[target.name] = tried(target, tree, given.most, reasons)
                print(f"{target.name}: {row['found']} of {row['tried']} found, {row['seconds']} s", flush=True)
                for one in row["survived"]:
                    print(f"  {one['line']}: {one['was']}  ->  {one['becomes']}", flush=True)
                if given.write:
                    RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
