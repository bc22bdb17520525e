"""How many small faults the tests find, where being wrong is silent: faults are planted one at a time.

    python benchmarks/mutation.py --target "frames in C" --most 40     try some, compare with nothing, store nothing
    python benchmarks/mutation.py --most 100 --write                   try some of every target, and store

Each target is a file and the tests that hold it, see ``TARGETS``. Which faults are tried is drawn by the same seed each
time. A fault counts as found where a test fails, the file does not compile, or the tests take three times as long.
Reasons for survivors are those of ``mutation_reasons.json``, by the line and what becomes of it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import random
import resource
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
SANITIZED: Final = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
KERNELS: Final = tuple(f"firmware/kernels/{path.name}" for path in sorted((ROOT / "firmware/kernels").iterdir()))
INCLUDE: Final = ("firmware/include", "firmware/runtime", *KERNELS, "tests/support/device", "tests/c")


@dataclass(frozen=True)
class Target:
    """``tests``: of pytest, or C programs of ``tests/c`` that are linked with the runtime."""

    name: str
    file: str
    tests: tuple[str, ...]
    marks: str = "not slow and not long"

    @property
    def python(self) -> bool:
        return self.file.endswith(".py")

    @property
    def by_pytest(self) -> bool:
        return not self.tests[0].endswith(".c")


SERVER: Final = ("tests/c/test_server.c", "tests/c/test_server_runs.c")
LINK: Final = ("tests/session/test_link.py", "tests/session/test_misbehaviour.py")
MEMORY: Final = (
    "tests/memory/test_plan.py",
    "tests/memory/test_sharing.py",
    "--deselect=tests/memory/test_plan.py::test_a_thousand_blocks",
    "tests/memory/test_overlaps.py",
    "--deselect=tests/memory/test_overlaps.py::test_overlaps_never_cost_bytes",
    "--deselect=tests/memory/test_overlaps.py::test_small_networks_are_solved_and_proven",
    "--deselect=tests/memory/test_plan.py::test_network_shapes_with_mixed_alignments",
)
"""As far as it takes no seconds."""
ROUNDING: Final = "tests/ops/test_rounding.py::test_the_function_is_single_precision[-O0]"
ARCHIVES: Final = ("tests/build/test_unpacking.py",)
PARTITION: Final = (
    "tests/partition/test_wishes.py",
    "tests/partition/test_claims.py::test_preference_and_cost",
    "tests/partition/test_claims.py::test_the_claim_that_covers_most_is_taken_whatever_the_order",
)
CYCLES: Final = ("tests/partition/test_regions.py", "tests/partition/test_claims.py")
VERIFY: Final = (
    "tests/runner/test_verify.py",
    "tests/partition/test_hooks.py::test_a_pass_that_changes_the_meaning_is_told_with_its_file",
)
TARGETS: Final = (
    Target(
        "fixed point in C",
        "firmware/kernels/common/uaccel_fixedpoint.h",
        ("tests/c/test_fixedpoint.c", "tests/c/test_leading_zeros.c"),
    ),
    Target("half to even in C", "firmware/kernels/common/uaccel_half_even.h", ("tests/c/test_output_stages.c",)),
    Target("requantising in C", "firmware/kernels/portable/uaccel_requantize.h", ("tests/c/test_output_stages.c",)),
    Target("single precision in C", "firmware/kernels/common/uaccel_float32.h", (ROUNDING,)),
    Target("fixed point in Python", "python/uaccel/ops/fixedpoint.py", ("tests/ops/test_fixedpoint.py",)),
    Target("exact meanings", "python/uaccel/ops/exact.py", ("tests/ops/test_exact.py",)),
    Target("frames in C", "firmware/runtime/uaccel_frame.c", ("tests/c/test_frame.c", *SERVER)),
    Target("tensors of the server", "firmware/runtime/uaccel_tensors.c", SERVER),
    Target("server", "firmware/runtime/uaccel_server.c", SERVER),
    Target("frames in Python", "python/uaccel/session/transport.py", ("tests/session/test_protocol.py", LINK[0])),
    Target("link", "python/uaccel/session/link.py", LINK),
    Target("placement: first fit", "python/uaccel/memory/problem.py", MEMORY),
    Target("placement: exact", "python/uaccel/memory/planner.py", MEMORY),
    Target("placement: check", "python/uaccel/memory/blocks.py", MEMORY),
    Target("placement: sharing", "python/uaccel/memory/blocks.py", MEMORY),
    Target(
        "tokens",
        "python/uaccel/accelerator/streams/commands.py",
        ("tests/accelerator/streams/test_tokens.py",),
        marks="",
    ),
    Target("partition: choice", "python/uaccel/partition/claims.py", PARTITION),
    Target("partition: cycles", "python/uaccel/partition/regions.py", CYCLES),
    Target("verification: comparing", "python/uaccel/runner/compare.py", ("tests/runner/test_compare.py",)),
    Target("verification: what is compared", "python/uaccel/runner/verify.py", VERIFY),
    Target("archives: form", "python/uaccel/build/board_json.py", ("tests/util/test_forms.py",)),
    Target("archives: reading", "python/uaccel/build/archive_reader.py", ARCHIVES),
    Target("archives: unpacking", "project_template/api_server/archive.py", ARCHIVES),
)


def copied(folder: Path) -> Path:
    """The repository as it stands, without what git ignores."""
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listing.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def load_without(target: Target, tree: Path) -> None:
    """Import all of the package that a fault cannot change: processes with one, which are forked off, need not."""
    sys.path[:0] = [str(tree / "python"), str(tree / "tests")]
    sys.dont_write_bytecode = True
    files = {str(path.relative_to(tree)): path for path in sorted((tree / "python/uaccel").rglob("*.py"))}
    names = {file: file.removeprefix("python/").removesuffix(".py").replace("/", ".") for file in files}
    hidden: dict[str, Any] = sys.modules
    hidden[names.get(target.file, "")] = None  # who imports it cannot be imported
    for name in names.values():
        if not name.endswith("__"):
            with suppress(ImportError):
                importlib.import_module(name)
    del hidden[names.get(target.file, "")]


def passes(target: Target, tree: Path, allowed: int = 600) -> tuple[bool, int]:
    """And how many seconds of a processor it took; those that take more than allowed, or much longer, are ended."""
    child = os.fork()
    if child == 0:
        status = 1
        with suppress(BaseException):
            os.setpgid(0, 0)
            os.chdir(tree)
            resource.setrlimit(resource.RLIMIT_CPU, (allowed, allowed))
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            status = _pytest(target) if target.by_pytest else _c_tests(target, tree)
        os._exit(status)
    end, ended, status = time.monotonic() + 60 * allowed, 0, 1
    while not ended and time.monotonic() < end:
        ended, status, used = os.wait4(child, os.WNOHANG)
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)
        return False, allowed
    return status == 0, round(used.ru_utime + used.ru_stime)


def _pytest(target: Target) -> int:
    """The same examples each time, and the first that fails is enough."""
    import pytest
    from hypothesis import Phase, settings

    settings.register_profile("once", phases=[Phase.explicit, Phase.generate], derandomize=True, deadline=None)
    settings.load_profile("once")
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", target.marks]
    return int(pytest.main([*options, *target.tests]))


def _c_tests(target: Target, tree: Path) -> int:
    """What does not have the fault is compiled once."""
    for test in target.tests:
        text = (tree / test).read_text()
        runtime = [path for path in sorted((tree / "firmware/runtime").glob("*.c")) if path.name != "uaccel_main.c"]
        needed = runtime if "server_host.h" in text else [path for path in runtime if f'"{path.stem}.h"' in text]
        objects = [_compiled(target, tree, source) for source in (tree / test, *needed)]
        command = ["gcc", *SANITIZED, *map(str, objects), "-lm", "-o", "mutated"]
        if subprocess.run(command, check=False).returncode or subprocess.run(["./mutated"], check=False).returncode:
            return 1
    return 0


def _compiled(target: Target, tree: Path, source: Path) -> Path:
    kept = source.with_suffix(".o")
    if not kept.exists() or target.file.endswith(".h") or source == tree / target.file:
        include = [f"-I{folder}" for folder in INCLUDE]
        command = ["gcc", "-std=c99", "-O0", "-DUACCEL_OBSERVE", *SANITIZED, *include, "-c", str(source)]
        subprocess.run([*command, "-o", str(kept)], check=True)
    return kept


def tried(
    target: Target, tree: Path, most: int, reasons: list[dict[str, Any]], before: dict[str, Any] | None = None
) -> dict[str, Any]:
    """``before``: a row, of which the survivors are tried again and nothing else."""
    file = tree / target.file
    text = file.read_text()
    if target.by_pytest:
        load_without(target, tree)
    begun = time.monotonic()
    right, seconds = passes(target, tree)
    if not right:
        raise RuntimeError(f"{target.name}: {' '.join(target.tests)} fail without a fault")
    known = mutants(text, python=target.python)
    drawn = sorted(random.Random(1).sample(known, min(most, len(known))), key=lambda one: one.begin)
    if before is not None:
        left = [(one["line"], one["becomes"]) for one in before["survived"]]
        drawn = [one for one in known if (one.line, one.told(text)["becomes"]) in left]
    survived: list[Mutant] = []
    for mutant in drawn:
        file.write_text(mutant.of(text))
        survived += [mutant] if passes(target, tree, 2 + 3 * seconds)[0] else []
    file.write_text(text)
    row = {
        "file": target.file,
        "tests": list(target.tests),
        "known": len(known),
        "tried": len(drawn),
        "found": len(drawn) - len(survived),
        "equivalent": 0,
        "seconds": round(time.monotonic() - begun),
        "survived": [one.told(text) for one in survived],
    }
    if before is not None:
        row |= {"tried": before["tried"], "found": before["tried"] - len(survived), "seconds": before["seconds"]}
    return judged(row, reasons)


def judged(row: dict[str, Any], reasons: list[dict[str, Any]]) -> dict[str, Any]:
    """With the reasons why tests do not find the faults that are left."""
    for one in row["survived"]:
        one |= next((known for known in reasons if all(one[key] == known[key] for key in ("was", "becomes"))), {})
    return row | {"equivalent": sum(bool(one.get("equivalent")) for one in row["survived"])}


def store(rows: dict[str, Any]) -> None:
    ordered = {target.name: rows[target.name] for target in TARGETS if target.name in rows}
    RESULTS.write_text(json.dumps(ordered, indent=1) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="Plant faults, and count those that tests find.")
    parser.add_argument("--target", nargs="+", default=[""], help="those whose name has one of these in it")
    parser.add_argument("--most", type=int, default=40, help="faults of each")
    parser.add_argument("--again", action="store_true", help="try those again that stored runs did not find")
    parser.add_argument("--reasons", action="store_true", help="plant nothing; give what is stored its reasons anew")
    parser.add_argument("--write", action="store_true", help="store what comes out")
    given = parser.parse_args()
    for name in LOADED:
        with suppress(ImportError):
            importlib.import_module(name)
    stored: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    reasons: list[dict[str, Any]] = json.loads(REASONS.read_text()) if REASONS.exists() else []
    if given.reasons:
        store({name: judged(row, reasons) for name, row in stored.items()})
        return 0
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        tree = copied(Path(folder))
        for target in TARGETS:
            if any(part in target.name for part in given.target):
                with multiprocessing.get_context("fork").Pool(1) as pool:
                    row = stored[target.name] = pool.apply(
                        tried, (target, tree, given.most, reasons, stored[target.name] if given.again else None)
                    )
                print(f"{target.name}: {row['found']} of {row['tried']} found, {row['seconds']} s", flush=True)
                for one in row["survived"]:
                    print(f"  {one['line']}: {one['was']}  ->  {one['becomes']}", flush=True)
                if given.write:
                    store(stored)
    return 0


if __name__ == "__main__":
    sys.exit(main())
