"""What generated C promises at any optimisation level, by running what compilers make of it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from codegen.levels import FAST_MATH, LEVELS, MODELS, Machine, check, sampled, sampled_by_meaning
from support.device.generated import Unpacked, archive, cc, cc_error, run
from support.models.networks import OWN
from support.models.onnx_networks import convolutional, quantised
from support.oracle.oracle import Tflm
from support.run.docblocks import ROOT, blocks
from uaccel.codegen.options import EmitOptions, Names
from uaccel.codegen.weights import Array, weights_header, weights_source
from uaccel.memory import Pool
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of

GCC, CLANG = Machine("gcc"), Machine("clang")
POWERPC = Machine("powerpc-linux-gnu-gcc", ("qemu-ppc",), ("-static",), big_endian=True)
BOARDS = ("mps2_an385", "mps2_an386", "mps2_an500", "mps3_an547", "qemu_riscv32", "qemu_riscv32v")
MACHINES = [GCC, CLANG, POWERPC, *(Machine(board=board) for board in BOARDS)]
POOL = (Pool("arena"),)
INTERFACES = [EmitOptions(POOL), EmitOptions(workspace_io=True), EmitOptions(POOL, workspace_io=True)]
GESTURE, MIXED = OWN / "gesture.tflite", OWN / "mixed.tflite"


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_every_model_at_every_level(machine: Machine, level: str, tmp_path: Path) -> None:
    machine.require()
    names = [name for name in MODELS if not (name == "mixed" and level == FAST_MATH)]
    check(machine, level.split(), [sampled(name, machine.board) for name in names], tmp_path)


@pytest.mark.parametrize(
    ("machine", "level", "model"),
    [
        (CLANG, "-O3", "gesture"),
        (CLANG, "-Ofast -flto", "stream"),
        (GCC, "-O3 -flto", "stream"),
        (POWERPC, "-O2", "int16"),
    ],
    ids=lambda value: value.name if isinstance(value, Machine) else value,
)
def test_a_model_at_a_level(machine: Machine, level: str, model: str, tmp_path: Path) -> None:
    """The quick part of the same."""
    machine.require()
    check(machine, level.split(), [sampled(model)], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "machine", [POWERPC, Machine(board="mps2_an386"), Machine(board="qemu_riscv32")], ids=lambda machine: machine.name
)
def test_rounding_in_single_precision(machine: Machine, tmp_path: Path) -> None:
    """As ONNX means it: by integers, or by the FPU."""
    machine.require()
    path = quantised(convolutional(), tmp_path, "QDQ", "QInt8", per_channel=True)
    check(machine, ["-O3"], [sampled_by_meaning(path, machine.board)], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("options", INTERFACES, ids=["pool", "inside", "pool, inside"])
@pytest.mark.parametrize("machine", [CLANG, POWERPC], ids=lambda machine: machine.name)
def test_every_interface_where_alignment_matters_most(machine: Machine, options: EmitOptions, tmp_path: Path) -> None:
    machine.require()
    check(machine, ["-O3"], [sampled(name, options=options) for name in MODELS], tmp_path)


@pytest.mark.parametrize(
    "level", [pytest.param(level, marks=() if level == "-O3" else pytest.mark.slow) for level in LEVELS]
)
def test_the_application_of_the_readme(level: str, tmp_path: Path) -> None:
    (text,) = (block.text for block in blocks(ROOT / "README.md") if block.file == "app.c")
    tree, application = Unpacked(tmp_path, archive(GESTURE)), tmp_path / "app.c"
    application.write_text(text)
    (scores,) = Tflm(GESTURE.read_bytes()).run([np.zeros((1, 32, 1, 3), np.int8)])
    wanted = "".join(f"{score} " for score in scores.ravel()) + "\n320 bytes of workspace\n"
    for machine in (GCC, CLANG):
        machine.require()
        program = tmp_path / machine.name
        cc(application, *tree.sources, *level.split(), include=[tree.include], output=program, compiler=machine.name)
        assert run(program) == wanted.encode()


ARRAY = re.compile(r"^(?!typedef).*\b(?:u?int\d+_t|float|double) \w+\[\w*\]", re.MULTILINE)
"""At the beginning of a line: those inside of functions are nobody else's."""


@pytest.mark.parametrize("options", [EmitOptions(), *INTERFACES], ids=["plain", "pool", "inside", "pool, inside"])
@pytest.mark.parametrize("model", ["int16", "stream"])
def test_every_array_says_its_alignment(model: str, options: EmitOptions) -> None:
    files = archive_of(compile_model(OWN / f"{model}.tflite", board="host", accelerators=(), options=options))
    texts = {name: data.decode() for name, data in files.items() if re.search(r"tvmgen_\w+\.[ch]$", name)}
    assert len(texts) == 5
    found = [match[0] for text in texts.values() for match in ARRAY.finditer(text) if not match[0].startswith(" ")]
    public = [line for line in found if re.fullmatch(r"extern uint8_t tvmgen_\w+_workspace\[\]", line)]
    assert len(public) == (options == EmitOptions(workspace_io=True)), "of unknown size, so nothing is assumed of it"
    assert [line for line in found if "UACCEL_ALIGNED(" not in line and line not in public] == []
    assert len(found) > 10


@pytest.mark.parametrize(
    ("dtype", "for_device", "alignment"),
    [("int8", False, 4), ("int16", False, 4), ("float32", False, 4), ("int64", False, 8), ("uint8", True, 16)],
)
def test_declaration_and_definition_agree(dtype: str, for_device: bool, alignment: int) -> None:
    array = Array("a", np.zeros(144, dtype), for_device)
    names = Names("m", (), (), (), ())
    wanted = f"UACCEL_ALIGNED({alignment}) const {'float' if dtype == 'float32' else f'{dtype}_t'} a[144]"
    assert f"extern {wanted};\n" in weights_header(names, [array], "")
    assert f"\n{wanted} UACCEL_{'DEVICE_' * for_device}CONSTANT = {{" in weights_source(names, [array], "")


def test_a_compiler_that_aligns_in_its_own_way_is_asked_how(tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(GESTURE))
    executor = tree.folder / "codegen/host/src/tvmgen_gesture.c"
    another = ("-U__GNUC__", "-fsyntax-only", "-Wno-unused-function")
    words = '#error "define UACCEL_ALIGNED(bytes) as what aligns an array with this compiler, or compile as C11"'
    assert words in cc_error(executor, *another, include=[tree.include])
    for way in ("-std=c11", "-DUACCEL_ALIGNED(bytes)=__attribute__((aligned(bytes)))"):
        cc(executor, *another, way, include=[tree.include])


def test_floats_are_not_computed_as_a_compiler_likes(tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(MIXED))
    executor = tree.folder / "codegen/host/src/tvmgen_mixed.c"
    words = "tvmgen_mixed: some layers compute floats, which -ffast-math changes; add -fno-fast-math"
    for flag in ("-Ofast", "-ffast-math", "-ffinite-math-only"):
        assert words in cc_error(executor, flag, "-fsyntax-only", include=[tree.include])
    check(GCC, ["-Ofast", "-fno-fast-math"], [sampled("mixed")], tmp_path)
