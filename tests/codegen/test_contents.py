"""What generated C must not hold, what it may call, and that a person can read it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from support.device.generated import archive, compiled, objects
from support.models.networks import ROOT, Network, each_made

BYTES_ONLY = {"memcpy", "memmove", "memset"}  # compilers call them for loops and structures, even in freestanding code
MATHS = {"expf", "logf", "powf", "sqrtf", "tanhf", "fabsf", "floorf", "ceilf", "roundf", "fminf", "fmaxf"}

FORBIDDEN = {
    "the heap": r"\b(malloc|calloc|realloc|free|alloca)\b",
    "the console": r"\b(printf|puts|fprintf|stdio)\b",
    "TVM": r"tvm(?!gen_)",
    "a clock": r"__date__|__time__|__timestamp__|\b(19|20)\d\d-\d\d-\d\d\b",
    "an absolute path": r"(?<![\w.*/])/(\w[\w.-]*/)+\w",
    "a file's place": r"__file__",
}


def code_files(files: dict[str, bytes]) -> dict[str, str]:
    return {name: data.decode() for name, data in files.items() if name.endswith((".c", ".h"))}


@each_made
@pytest.mark.parametrize("what", FORBIDDEN)
def test_c_holds_none_of(network: Network, what: str) -> None:
    files = code_files(archive(network.path))
    assert len(files) >= 5
    pattern = re.compile(FORBIDDEN[what])
    found = {name: match.group() for name, text in files.items() if (match := pattern.search(text.lower()))}
    assert found == {}


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("the heap", "uint8_t *x = malloc(4);"),
        ("the console", "#include <stdio.h>"),
        ("TVM", "TVMBackendAllocWorkspace(1);"),
        ("a clock", "/* made 2024-05-06 */"),
        ("an absolute path", "/* from /home/me/model.tflite */"),
    ],
)
def test_the_patterns_see_what_they_forbid(what: str, line: str) -> None:
    assert re.search(FORBIDDEN[what], line.lower())


@each_made
def test_no_file_of_the_archive_knows_this_computer(network: Network) -> None:
    for name, data in archive(network.path).items():
        for word in (str(ROOT), str(Path.home()) + "/", "/tmp/"):
            assert word.encode() not in data, f"{name} holds {word}"


def symbols(files: list[Path], *flags: str) -> set[str]:
    done = subprocess.run(["nm", *flags, *files], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in done.stdout.splitlines() if len(line.split()) >= 2}


@pytest.mark.covering
@each_made
@pytest.mark.parametrize("build", [("gcc", "-O2"), ("clang", "-O0")], ids="".join)
def test_nothing_but_bytes_and_maths_is_called(network: Network, build: tuple[str, str]) -> None:
    files = objects(network.path, *build)
    prefix = compiled(network.path).generated.names.prefix
    defined = symbols(files, "--defined-only", "-g")
    assert f"{prefix}_run_c" in defined
    assert {name for name in defined if not name.startswith(f"{prefix}_")} == set()
    called = symbols(files, "-u") - defined
    assert called <= BYTES_ONLY | (MATHS if network.float_outputs else set())


@each_made
def test_there_is_no_initialised_ram(network: Network) -> None:
    """Constants are constant and the workspace is not initialised: RAM costs no flash and no copying at start."""
    done = subprocess.run(
        ["size", "-A", *objects(network.path, "gcc", "-O2")], capture_output=True, text=True, check=True
    )
    sizes: dict[str, int] = {}
    for line in done.stdout.splitlines():
        name, *numbers = line.split() or [""]
        if name.startswith("."):
            sizes[name] = sizes.get(name, 0) + int(numbers[0])
    assert {name: size for name, size in sizes.items() if name.startswith(".data") and size} == {}
    placement = compiled(network.path).placement
    kept = placement.arena + placement.state
    assert kept <= sizes[".bss"] < kept + (32 if placement.state else 16)


@each_made
def test_lines_fit_a_screen(network: Network) -> None:
    files = code_files(archive(network.path))
    wide = [
        f"{name}:{i}" for name, text in files.items() for i, line in enumerate(text.splitlines()) if len(line) > 120
    ]
    assert wide == []


@each_made
def test_text_is_tidy(network: Network) -> None:
    for name, text in code_files(archive(network.path)).items():
        assert "\t" not in text, name
        assert "\n\n\n" not in text, name
        assert text.endswith("\n"), name
        assert not text.endswith("\n\n"), name
        assert not re.search(r"[ \t]\n", text), name


@each_made
def test_each_layer_has_a_function_and_a_comment_that_says_what_it_is(network: Network) -> None:
    model = compiled(network.path)
    source = model.generated.sources[f"{model.generated.names.prefix}.c"]
    for layer in model.program.layers:
        if layer.is_view:
            assert f"{layer.name}: " in source
            continue
        head, _, _ = source.partition(f"UACCEL_LAYER void layer_{layer.name}(")
        comment = " ".join(head[head.rindex("/*") :].replace(" * ", " ").split())
        operator = f"{layer.name}: operator {layer.origin.index} of the model, {layer.origin.op}"
        assert operator in comment
        assert f"engine {layer.engine}: {layer.reason}" in comment
        for value in (*layer.inputs, *layer.outputs):
            assert str(value.info) in comment
            assert str(value.spec.quantisation or "") in comment
