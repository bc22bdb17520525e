"""Several models in one export: one arena, every kernel once, and outputs that are those of each model alone."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from codegen.export.exports import ALL, STAND_INS, typed
from codegen.export.test_manifests import RULES
from codegen.export.test_sbom import complaints
from codegen.levels import ON_A_BOARD, SEND, sent
from support.device.boards import board_with_tools, build_bare
from support.device.generated import cc, run
from support.models.networks import OWN
from support.oracle.oracle import Tflm, random_inputs
from support.oracle.sanitized import SANITIZE
from support.run.command import Call, call_in
from uaccel.board import load_board
from uaccel.codegen.export.formats import export_files
from uaccel.codegen.export.library import Several, arena_of
from uaccel.codegen.options import EmitOptions
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import exported
from uaccel.runner.firmware import tensor_types
from uaccel.runner.samples import default_samples
from uaccel.util.files import write_folder

HERE = Path(__file__).parent
NAMES = ("stream", "gesture", "residual")
MODELS = [OWN / f"{name}.tflite" for name in NAMES]
ALONE = {"arduino", "single"}
TOGETHER = sorted(set(ALL) - ALONE)
VARIABLES = {"zephyr": {"ZEPHYR_BASE": str(STAND_INS)}, "esp-idf": {"IDF_PATH": str(STAND_INS)}}
SAMPLES = 4
NONE_DIFFER = "0 elements differ from what the models mean"


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return call_in(capfd)


@functools.cache
def trio(board: str = "host") -> Several:
    """Three models, compiled once a process."""
    return library("trio", MODELS, board)


def library(label: str, models: Sequence[Path], board: str) -> Several:
    options, parts = EmitOptions(arena=arena_of(label)), []
    for path in models:
        compiled = compile_model(path, board=board, options=options)
        (inputs,) = default_samples(tensor_types(compiled.model.signature.inputs), 1)
        parts.append(exported(compiled, load_board(board), inputs, "uaccel export"))
    return Several(label, tuple(parts), load_board(board), "uaccel export")


def written(folder: Path, to: str, board: str = "host") -> Path:
    target = folder / "tvmgen_trio"
    write_folder(target, export_files(trio(board), to), "-o")
    return target


@pytest.mark.parametrize("to", TOGETHER)
def test_every_format_that_holds_several(to: str, tmp_path: Path) -> None:
    """Its README's commands work, what it lists is there, and its files keep the build system's rules."""
    folder = written(tmp_path, to)
    assert complaints(folder) == []
    assert to not in RULES or RULES[to](folder) == []
    printed = typed(folder, path=STAND_INS, variables=VARIABLES.get(to, {}))
    assert NONE_DIFFER in printed or to == "cmsis-pack", "its command makes the pack"
    named = [line.split("`")[1] for line in (folder / "README.md").read_text().splitlines() if line.startswith("| `")]
    assert [name for name in named if not list(folder.glob(name.rstrip("/")))] == []
    assert len(list(folder.rglob("uaccel_kernel.h"))) == 1


def test_the_arena_is_that_of_the_largest() -> None:
    export = trio()
    assert export.arena == max(part.generated.placement.arena for part in export.models) == 4304
    assert [name for name, text in export.sources.items() if "_arena[" in text] == ["tvmgen_trio_arena.c"]
    assert not any("uint8_t workspace[" in text for text in export.sources.values())


def wanted() -> tuple[str, bytes]:
    """The samples as C, and what the application sends: of interpreters that each know one model."""
    models = {name: path.read_bytes() for name, path in zip(NAMES, MODELS, strict=True)}
    inputs = {name: random_inputs(data, 5, SAMPLES) for name, data in models.items()}
    arrays, sent_bytes, interpreters = f"enum {{ SAMPLES = {SAMPLES} }};\n", b"", {}
    for name, samples in inputs.items():
        rows = ",\n".join("{" + ",".join(map(str, sample[0].ravel().tolist())) + "}" for sample in samples)
        arrays += f"static int8_t {name}_samples[SAMPLES][{samples[0][0].size}] = {{\n{rows}}};\n"
        interpreters[name] = Tflm(models[name])
    for i in range(SAMPLES):
        _, logits = interpreters["stream"].run(inputs["stream"][i])
        _, scores = interpreters["residual"].run(inputs["residual"][i])
        (classes,) = interpreters["gesture"].run(inputs["gesture"][i])
        sent_bytes += b"\0\0" + logits.tobytes() + b"\0" + scores.tobytes() + classes.tobytes()
    return arrays, sent_bytes


def application(folder: Path, board: str) -> tuple[list[Path], bytes]:
    export = written(folder, "c", board)
    (export / "main.c").unlink()
    arrays, expected = wanted()
    (export / "samples.h").write_text(arrays)
    (export / "send.h").write_text(SEND)
    return [HERE / "app_trio.c", *sorted(export.glob("*.c"))], expected


@pytest.mark.parametrize("flags", [("-O2",), ("-O1", *SANITIZE)], ids=["", "sanitized"])
def test_models_in_turn_on_this_computer(flags: tuple[str, ...], tmp_path: Path) -> None:
    sources, expected = application(tmp_path, "host")
    cc(*sources, *flags, "-lm", include=[tmp_path / "tvmgen_trio"], output=tmp_path / "program")
    assert run(tmp_path / "program") == expected


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mps2_an386", "mps3_an547"])
def test_models_in_turn_on_a_board(name: str, tmp_path: Path) -> None:
    board = board_with_tools(name)
    sources, expected = application(tmp_path, name)
    elf = build_bare(board, sources, tmp_path / "bare", ON_A_BOARD, f"-I{tmp_path / 'tvmgen_trio'}")
    assert sent(board, elf, len(expected), name) == expected


@pytest.mark.slow
def test_the_command_line_writes_them_and_its_command_repeats(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = call("export", *MODELS, "--to", "make", "--name", "trio", "-o", tmp_path / "out", "--json")
    assert done.status == 0, done.err
    assert done.report["arena"] == 4304
    assert [one["name"] for one in done.report["models"]] == list(NAMES)
    (line,) = [row for row in (tmp_path / "out/README.md").read_text().splitlines() if row.startswith("Made by `")]
    words = shlex.split(line.removeprefix("Made by `").removesuffix("`."))
    monkeypatch.chdir(OWN)
    (tmp_path / "again").mkdir()
    assert call(*words[1:-1], tmp_path / "again" / "out").status == 0
    for path in (tmp_path / "out").rglob("*"):
        assert path.is_dir() or path.read_bytes() == (tmp_path / "again" / path.relative_to(tmp_path)).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--to", "single"],
            "--to single is one model in one file, not 3; export each by itself, or take --to c, cmake or make",
        ),
        (
            ["--to", "arduino"],
            "--to arduino has sketches about one model, not 3; export each by itself, or take --to c, cmake or make",
        ),
        (
            ["--to", "c", "--state", "a=b"],
            "--state 'a=b': whose state is it? wanted NAME:OUT=IN, where NAME is one of stream, gesture, residual",
        ),
        (
            ["--to", "c", "--state", "gesture:a=b"],
            '--state a=b: the model has no output "a"; its outputs are softmax_1',
        ),
        (
            ["--to", "c", "--state", "auto"],
            "--state auto: no output of stream, gesture and residual is named as the next value of an input; "
            "name a pair with --state NAME:OUT=IN",
        ),
        (
            ["--to", "c", "--name", "gesture"],
            "the library and a model are called gesture in C; rename a file, or name the library with --name",
        ),
    ],
)
def test_refusals(call: Call, arguments: list[str], words: str, tmp_path: Path) -> None:
    done = call("export", *MODELS, *arguments, "-o", tmp_path / "out")
    assert (done.status, done.complaint) == (1, words)


def test_two_models_of_one_name_are_refused(call: Call, tmp_path: Path) -> None:
    done = call("export", MODELS[0], MODELS[0], "--to", "c", "-o", tmp_path / "out")
    assert (done.status, done.complaint) == (
        1,
        "two models are called stream in C; rename a file, or name the library with --name",
    )


def test_an_accelerator_computes_for_several(call: Call, tmp_path: Path) -> None:
    """Its driver is there once, and each model has its devices."""
    models = [OWN / "residual.tflite", OWN / "gesture.tflite"]
    done = call("export", *models, "--to", "make", "-a", "npu", "-o", tmp_path / "out")
    assert done.status == 0, done.err
    assert NONE_DIFFER in typed(tmp_path / "out")
