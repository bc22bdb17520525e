"""Constants in a binary file: the same bytes in the same sections as from C, in archives, projects and exports."""

from __future__ import annotations

import ctypes
import io
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codegen.export.exports import ALL, NONE_DIFFER, STAND_INS, typed
from support.device.boards import board_with_tools
from support.device.generated import compiled
from support.device.hostlib import kernel_folders
from support.models.networks import OWN
from support.run.command import Call
from uaccel.board import load_board
from uaccel.build.elf import sections
from uaccel.build.project import objects
from uaccel.codegen.binary import BINARY_FROM, assembler, constants_file, is_binary
from uaccel.codegen.export.formats import export_files
from uaccel.codegen.options import EmitOptions, Names
from uaccel.codegen.weights import Array, weights_header, weights_source
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import exported
from uaccel.runner.firmware import tensor_types
from uaccel.runner.samples import default_samples
from uaccel.util.files import write_folder

NAMES = Names("large", (), (), (), ())
DTYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "int64", "float32", "float64")


def arrays() -> list[Array]:
    """One of each type, one without elements, one that an accelerator reads, and one in a pool."""
    made = [Array(f"a_{dtype}", np.arange(37).reshape(1, 37).astype(dtype)) for dtype in DTYPES]
    made.append(Array("a_empty", np.zeros((0, 3), np.int16)))
    made.append(Array("a_device", np.arange(5, dtype=np.int8), for_device=True, needed=64))
    return [*made, Array("a_pool", np.arange(7, dtype=np.int16), pool="slow")]


def objects_of(folder: Path, compiler: str) -> dict[str, Path]:
    """Shared objects of the constants by form, with the sections that a board's project names."""
    file, begins = constants_file(arrays())
    (folder / f"{NAMES.prefix}_weights.npz").write_bytes(file)
    (folder / f"{NAMES.prefix}_weights.h").write_text(weights_header(NAMES, arrays(), "/* made */\n"))
    (folder / "weights.S").write_text(assembler(NAMES, arrays(), begins, "", "/* made */\n"))
    (folder / "weights.c").write_text(weights_source(NAMES, arrays(), "/* made */\n"))
    places = {
        "UACCEL_CONSTANT": "weights",
        "UACCEL_DEVICE_CONSTANT": "device",
        "UACCEL_CONSTANT_POOL(name)": "pool.slow",
    }
    macros = [f'-D{name}=__attribute__((section(".rodata.uaccel_{place}")))' for name, place in places.items()]
    include = [f"-I{path}" for path in (folder, *kernel_folders())]
    made = {}
    for form in ("c", "S"):
        made[form] = folder / f"{form}.so"
        words = [compiler, "-shared", "-fPIC", *(macros if form == "c" else []), *include]
        subprocess.run([*words, "-c", folder / f"weights.{form}", "-o", folder / f"{form}.o"], check=True)
        subprocess.run([compiler, "-shared", folder / f"{form}.o", "-o", made[form]], check=True)
    return made


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_type_has_the_bytes_and_the_section_that_c_gives_it(compiler: str, tmp_path: Path) -> None:
    made = objects_of(tmp_path, compiler)
    for path in made.values():
        loaded = ctypes.CDLL(str(path))
        for array in arrays():
            there = (ctypes.c_uint8 * max(array.data.nbytes, array.data.itemsize)).in_dll(loaded, array.symbol)
            assert bytes(there)[: array.data.nbytes] == array.data.tobytes(), array.symbol
            assert ctypes.addressof(there) % array.alignment == 0
    parts = (sections(tmp_path / f"{form}.o") for form in "cS")
    named = [{name: size for name, size in part if name.startswith(".rodata.")} for part in parts]
    assert_padded_alike(*named)


def assert_padded_alike(one: dict[str, int], other: dict[str, int]) -> None:
    """The same sections, whose sizes differ by padding at most: the order of arrays in C is the compiler's own."""
    assert one.keys() == other.keys()
    assert [name for name in one if abs(one[name] - other[name]) > 64] == []


def test_numpy_reads_the_file() -> None:
    with np.load(io.BytesIO(constants_file(arrays())[0])) as stored:
        assert {name: (stored[name].dtype.str, stored[name].shape) for name in stored} == {
            array.symbol: (array.data.dtype.newbyteorder("<").str, array.data.shape) for array in arrays()
        }


@pytest.mark.parametrize(("size", "form", "binary"), [
    (BINARY_FROM, "auto", True), (BINARY_FROM - 1, "auto", False), (BINARY_FROM, "c", False), (1, "binary", True),
])  # fmt: skip
def test_large_constants_are_binary_unless_the_user_says_how(size: int, form: Any, binary: bool) -> None:
    assert is_binary([Array("a", np.zeros(size, np.int8))], EmitOptions(constants=form)) is binary


BOARDS = {
    "host": (),
    "mps2_an386": (),
    "qemu_riscv32": (),
    "mps3_an547": ("-a", "npu"),
}


@pytest.mark.parametrize("board", BOARDS)
def test_firmware_has_the_same_constants_and_outputs(board: str, tmp_path: Path, call: Call) -> None:
    if board != "host":
        board_with_tools(board)
    told: dict[str, Any] = {}
    sizes: list[dict[str, int]] = []
    for form in ("c", "binary"):
        words = ("--board", board, "--constants", form, "--verify", "--symbols", "--json", *BOARDS[board])
        project, outputs = tmp_path / form, tmp_path / f"{form}.npz"
        done = call("run", OWN / "residual.tflite", *words, "--project", project, "--outputs", outputs)
        assert done.status == 0, done.err
        (weights,) = (file for file in objects(project / "build", "model") if "_weights." in file.name)
        told[form] = {
            "verified": done.report["verify"]["bit_exact"],
            "ram": {key: value for key, value in done.report["ram"].items() if key != "symbols"},
            "flash": {key: value for key, value in done.report["flash"].items() if key != "symbols"},
            "symbols": [row for row in done.report["flash"].get("symbols") or [] if ":" not in row["name"]],
            "outputs": {name: array.tobytes() for name, array in np.load(outputs).items()},
        }
        sizes.append({name: size for name, size in sections(weights) if "rodata" in name or "uaccel" in name})
    assert told["c"]["verified"] is True
    assert told["binary"] == told["c"]
    if board == "host":  # C for this computer leaves the section to the compiler
        sizes = [{"": sum(each.values())} for each in sizes]
    assert_padded_alike(*({name: size for name, size in each.items() if size} for each in sizes))


def test_the_archive_says_so(tmp_path: Path, call: Call) -> None:
    done = call("compile", OWN / "gesture.tflite", "--constants", "binary", "-o", f"{tmp_path}/made/")
    assert done.status == 0
    own = json.loads((tmp_path / "made/metadata.json").read_text())["uaccel"]
    file = "codegen/host/src/tvmgen_gesture_weights.npz"
    assert own["constants"] == {"file": file, "byte_order": "little"}
    with np.load(tmp_path / "made" / file) as stored:
        assert {name: stored[name].tobytes() for name in stored} == {
            array.symbol: array.data.tobytes() for array in compiled(OWN / "gesture.tflite").generated.arrays
        }
    source = (tmp_path / "made/codegen/host/src/tvmgen_gesture_weights.S").read_text()
    assert "--board host --name gesture --constants binary" in source
    assert not (tmp_path / "made/parameters/gesture.npz").exists()


STAND_IN_VARIABLES = {"ZEPHYR_BASE": str(STAND_INS), "IDF_PATH": str(STAND_INS)}
C_ALONE = ("arduino", "cmsis-pack", "single")


def exported_as(to: str, folder: Path, board: str = "host") -> Path:
    compiled = compile_model(OWN / "gesture.tflite", board="host", options=EmitOptions(constants="binary"))
    (inputs,) = default_samples(tensor_types(compiled.model.signature.inputs), 1)
    export = exported(compiled, load_board(board), inputs, "uaccel export gesture.tflite --constants binary")
    write_folder(folder / "out", export_files(export, to), "-o")
    return folder / "out"


@pytest.mark.parametrize("to", [to for to in ALL if to not in C_ALONE])
def test_an_export_has_both_files(to: str, tmp_path: Path) -> None:
    """Those of build systems that are here, or stood in for, are built and run."""
    folder = exported_as(to, tmp_path)
    (source,), (binary,) = folder.rglob("*_weights.S"), folder.rglob("*_weights.npz")
    assert source.parent == binary.parent
    bill = json.loads((folder / "sbom.spdx.json").read_text())
    assert f"./{binary.relative_to(folder)}" in {file["fileName"] for file in bill["files"]}
    assert NONE_DIFFER in typed(folder, path=STAND_INS, variables=STAND_IN_VARIABLES)


@pytest.mark.parametrize("to", ["c", "cmake", "make"])
def test_a_board_s_compiler_takes_it(to: str, tmp_path: Path) -> None:
    board_with_tools("mps2_an386")
    typed(exported_as(to, tmp_path, "mps2_an386"))


@pytest.mark.parametrize("to", C_ALONE)
def test_a_format_of_c_alone_refuses(to: str, tmp_path: Path, call: Call) -> None:
    words = ("--to", to, "--constants", "binary", "-o", tmp_path / "out")
    done = call("export", OWN / "gesture.tflite", *words)
    assert done.status != 0
    assert done.err.splitlines()[-1] == (
        f"uaccel: error: --to {to} takes C alone, and the constants, 1,605 bytes, are a binary file that an assembler "
        "file includes; add --constants c, or choose another format"
    )
