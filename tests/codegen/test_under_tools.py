"""Generated C under other people's tools: static analysers, flags that change types, threads, interrupts.

What docs/generated-code.md promises or refuses under "Under every tool" is a row here.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from codegen.levels import Machine, check, sampled
from support.device.generated import WARNINGS, Unpacked, archive, cc
from support.models.networks import OWN

HERE = Path(__file__).parent
GESTURE, RESIDUAL = (OWN / f"{name}.tflite" for name in ("gesture", "residual"))
ANALYSED = ("gesture", "stream")
TIDY = "-*,bugprone-*,cert-*,clang-analyzer-*,-bugprone-easily-swappable-parameters,-cert-dcl37-c,-cert-dcl51-cpp"
TIDY += ",-bugprone-reserved-identifier,-bugprone-suspicious-include"
ANALYSERS = {
    "gcc": ["gcc", "-fanalyzer", "-O1", "-c", "-o", "/dev/null"],
    "clang": ["clang", "--analyze", "--analyzer-output", "text"],
    "clang-tidy": ["clang-tidy", "--quiet", f"--checks={TIDY}"],
    "cppcheck": ["cppcheck", "--quiet", "--enable=warning,portability,performance", "--std=c99"],
}
ACCEPTED = re.compile(r"uaccel_softmax_body\.h:\d+:\d+: warning: The result of the left shift is undefined .* '32'")
"""By 32 where a sum is 0: this one has exp(0) of the largest element in it, which no analyser knows."""
HOLE = """
int tvmgen_hole(int number);
int tvmgen_hole(int number)
{
    int values[4] = {0, 1, 2, 3};
    int *at = number > 3 ? (int *)0 : values;
    return number > 3 ? *at : at[number & 3];
}
"""


def complaints(analyser: str, sources: list[Path], include: Path) -> list[str]:
    """Its warnings; none where it is content."""
    if shutil.which(analyser) is None:
        pytest.skip(f"{analyser} is not installed")
    said = ""
    for source in sources:
        flags = ["--", "-std=c99", f"-I{include}"] if analyser == "clang-tidy" else [f"-I{include}"]
        command = [*ANALYSERS[analyser], str(source), *flags]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0 or "warning" in done.stdout + done.stderr, done.stderr
        said += done.stdout + done.stderr
    lines = [line for line in said.splitlines() if re.search(r": (warning|error|portability|performance): ", line)]
    return [line for line in lines if not ACCEPTED.search(line)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("model", ANALYSED)
@pytest.mark.parametrize("analyser", ANALYSERS)
def test_an_analyser_has_nothing_to_say(analyser: str, model: str, tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(OWN / f"{model}.tflite"))
    executors = [path for path in tree.sources if not path.name.endswith("_weights.c")]
    assert complaints(analyser, executors, tree.include) == []


@pytest.mark.parametrize("analyser", ANALYSERS)
def test_an_analyser_would_say_so(analyser: str, tmp_path: Path) -> None:
    (tmp_path / "hole.c").write_text(HOLE)
    assert complaints(analyser, [tmp_path / "hole.c"], tmp_path) != []


FLAGS = ("-funsigned-char", "-fshort-enums", "-funsigned-bitfields", "-fwrapv", "-ftrapv", "-fno-builtin")


@pytest.mark.sample(2)
@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("model", ["gesture", "stream", "int16"])
def test_a_flag_changes_no_byte(flag: str, model: str, tmp_path: Path) -> None:
    check(Machine("gcc"), ["-O2", flag], [sampled(model)], tmp_path)


AT_ONCE = {
    "two models in threads": ("", ()),
    "one model in two threads, a pool each": ("sram", ("-DPOOLS",)),
    "in an interrupt of another": ("", ("-DINTERRUPT",)),
}


def program(folder: Path, pool: str, *flags: str) -> Path:
    tree = Unpacked(folder, archive(GESTURE, workspace_pool=pool), archive(RESIDUAL))
    built = folder / "at_once"
    sources = (HERE / "app_at_once.c", *tree.sources)
    cc(*sources, "-O2", "-g", "-pthread", *flags, "-lm", include=[tree.include], output=built, warnings=WARNINGS)
    return built


@pytest.mark.parametrize(("pool", "flags"), AT_ONCE.values(), ids=AT_ONCE)
def test_runs_at_once(pool: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    done = subprocess.run([program(tmp_path, pool, *flags)], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "0 failures\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pool", "flags", "races"),
    [("", (), False), ("sram", ("-DPOOLS",), False), ("", ("-DSHARED",), True)],
    ids=["two models", "a pool each", "the static workspace"],
)
def test_threads_share_nothing_but_the_static_workspace(
    pool: str, flags: tuple[str, ...], races: bool, tmp_path: Path
) -> None:
    """Which is why one model with it is not to be run twice at once."""
    built = program(tmp_path, pool, "-fsanitize=thread", *flags)
    done = subprocess.run([built], capture_output=True, text=True, timeout=120, check=False)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("ThreadSanitizer does not run on this kernel")
    assert ("data race" in done.stderr) == races
