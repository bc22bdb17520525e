"""Tensors may be called anything in a model file; the C stays valid and its names unique."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.device.generated import Unpacked, archive, cc
from support.device.hostlib import STRICT
from support.models.tflite_writer import ModelBuilder
from support.oracle.oracle import Tflm, random_inputs
from support.oracle.sanitized import compile_pooled, run_sanitized
from uaccel.accelerator import load_accelerators
from uaccel.accelerator.discovery import write_starter
from uaccel.codegen.options import c_name
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of
from uaccel.util.c_text import block_comment, quote_comment
from uaccel.util.files import data_dir
from uaccel.util.text import comment_safe


def model(inputs: list[str], outputs: list[str]) -> bytes:
    """A fully connected layer from each input to the output of the same number."""
    builder = ModelBuilder()
    weights = builder.constant("weights", np.array([[3, -5], [7, 11]], np.int8), scale=0.5)
    for given_name, wanted_name in zip(inputs, outputs, strict=True):
        x = builder.input(given_name, (1, 2), "int8", scale=0.5, zero_point=1)
        y = builder.tensor(wanted_name, (1, 2), "int8", scale=2.0, zero_point=-1)
        builder.op("FULLY_CONNECTED", [x, weights], [y])
        builder.output(y)
    return builder.build()


WEIRD = {
    "spaces": ["a b", "  a  ", " "],
    "quotes": ['"', "'", 'say "hi"', "it's"],
    "comments": ["a */ int x;", "/* a", "//", "*\\", "\\*", "*/*/", "**//", "/" * 9 + "*"],
    "backslashes": ["\\", "a\\", "\\n", "line\\\n"],
    "trigraphs": ["??/", "???/", "a??)b", "????", "??'"],
    "newlines": ["a\nb", "\r\n", "a\n#error no", "\x0b\x0c"],
    "control characters": ["\x01", "\x1b[2J", "\x7f", "\u202e", "\ufeff"],
    "unicode": ["é", "日本語", "𝔘", "ａ", "٣", "²"],
    "words of C": ["int", "default", "_Bool", "restrict", "inline", "return", "struct", "typeof"],
    "words of C++": ["class", "new", "template", "this", "operator", "nullptr", "and", "char8_t"],
    "macros": ["NULL", "INT8_MAX", "UINT32_C", "linux", "unix", "errno", "  LINE  ", "SIZE_MAX", "bool", "true"],
    "long": ["x" * 300, "y" * 299 + "1", "y" * 299 + "2", "é" * 200],
    "fused": [";".join(f"StatefulPartitionedCall/sequential/dense_{i}/BiasAdd" for i in range(9))],
    "duplicates": ["same", "same", "same_1", "same"],
    "empty": ["", "", "tensor_1"],
    "alike after sanitising": ["a:0", "a/0", "a_0", "A_0", "a 0"],
    "digits first": ["1", "0x", "9lives", "1"],
    "names of ours": [
        "inputs",
        "outputs",
        "workspace",
        "workspace_pools",
        "run",
        "WORKSPACE",
        "arena_WORKSPACE_POOL",
        "arena_CONSTANT_POOL",
    ],
    "macros of ours": ["TVMGEN_MODEL_OK", "TVMGEN_MODEL_NULL_POINTER", "TVMGEN_MODEL_H", "TVMGEN_MODEL_WORKSPACE_SIZE"],
    "macros of ours, by name": ["x", "TVMGEN_MODEL_X_SIZE", "TVMGEN_MODEL_X_SIZE_", "TVMGEN_MODEL_WEIGHTS_H"],
    "macros of headers": ["UACCEL_LAYER", "UACCEL_CONSTANT", "UACCEL_KERNEL_ABI", "FP_NAN", "M_PI", "HUGE_VAL", "PPC"],
    "more of ours": ["uint8_t", "int32_t", "layer", "AT", "parameters", "input0", "output0", "tvmgen_model_run"],
    "underscores": ["_", "__", "_a", "__a", "_A", "a_", "a__b"],
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", WEIRD)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_any_tensor_name_gives_valid_c(kind: str, compiler: str, tmp_path: Path) -> None:
    names = WEIRD[kind]
    file = tmp_path / "model.tflite"
    file.write_bytes(model(names, [name[::-1] if kind == "words of C" else name for name in names]))
    for pool in ("", "arena"):
        tree = Unpacked(tmp_path / pool, archive(file, workspace_pool=pool, constant_pool=pool))
        for source in (*tree.sources, *tree.descriptions):
            include = [tree.include, data_dir("firmware") / "include"]
            cc(source, "-fsyntax-only", "-Wcomment", "-Wtrigraphs", include=include, compiler=compiler)
        header = tree.include / "tvmgen_model.h"
        cc("-x", "c++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", header, warnings=())
        cc("-x", "c", "-std=gnu11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", header, warnings=())
        comments = [line for line in header.read_text().splitlines() if line.startswith("    /*")]
        assert max(map(len, comments)) <= 150


@pytest.mark.parametrize("kind", WEIRD)
def test_every_tensor_has_its_own_member_and_size(kind: str, tmp_path: Path) -> None:
    names = WEIRD[kind]
    file = tmp_path / "model.tflite"
    file.write_bytes(model(names, names))
    text = archive(file)["codegen/host/include/tvmgen_model.h"].decode()
    macros = re.findall(r"^#define (TVMGEN_MODEL_\w+_SIZE) 2$", text, re.MULTILINE)
    assert len(set(macros)) == 2 * len(names)
    for struct in ("inputs", "outputs"):
        body = text.partition(f"struct tvmgen_model_{struct} {{")[2].partition("};")[0]
        members = re.findall(r"^    void \*(\w+);$", body, re.MULTILINE)
        assert len(set(members)) == len(names)


def test_tensors_keep_their_order_whatever_their_names() -> None:
    data = model(["same", "same", "2", "default", ""], ["", "a */", "same", "same", "\\"])
    inputs = random_inputs(data, 0, 5)
    reference = Tflm(data)
    for values, outputs in zip(inputs, run_sanitized(compile_pooled(data), inputs), strict=True):
        for got, wanted in zip(outputs, reference.run(values), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("name", ["inputs", "devices", "layers"])
def test_names_of_an_accelerator_meet_those_of_the_model_and_of_the_executor(name: str, tmp_path: Path) -> None:
    """Tensors are called like a macro of the driver's header, which the executor includes."""
    write_starter(name, tmp_path / "starter")
    macro = f"{name.upper()}_H"
    file = tmp_path / "model.tflite"
    file.write_bytes(model([macro, name], ["y", f"{macro}_"]))
    found = load_accelerators([str(tmp_path / "starter")])
    for cpu_fallback in (True, False):
        made = compile_model(file, board="host", accelerators=found, cpu_fallback=cpu_fallback)
        tree = Unpacked(tmp_path / str(cpu_fallback), archive_of(made))
        assert f"    void *{macro}_;\n" in (tree.include / "tvmgen_model.h").read_text()
        driver = tree.folder / f"project/accelerators/{name}/driver"
        for source in (*tree.sources, *tree.descriptions):
            include = [tree.include, driver, data_dir("firmware") / "include"]
            cc(source, "-fsyntax-only", include=include, warnings=STRICT)


@pytest.mark.parametrize(
    ("tensor", "member", "macro"),
    [
        ("input_1", "input_1", "INPUT_1"),
        ("serving_default_x:0", "serving_default_x_0", "SERVING_DEFAULT_X_0"),
        ("StatefulPartitionedCall:0", "StatefulPartitionedCall_0", "STATEFULPARTITIONEDCALL_0"),
        ("a::b", "a__b", "A__B"),
        ("/x/", "_x_", "_X_"),
        ("é", "tensor__", "__"),
        ("default", "default_", "DEFAULT"),
        ("3d", "tensor3d", "3D"),
    ],
)
def test_names_follow_microtvms_rule_where_that_gives_valid_c(
    tensor: str, member: str, macro: str, tmp_path: Path
) -> None:
    file = tmp_path / "model.tflite"
    file.write_bytes(model([tensor], ["y"]))
    text = archive(file)["codegen/host/include/tvmgen_model.h"].decode()
    assert f"    void *{member};\n" in text
    assert f"#define TVMGEN_MODEL_{macro}_SIZE 2\n" in text


HOSTILE = st.text(st.sampled_from('*/\\? \nx"')) | st.text()


@settings(max_examples=500, deadline=None)
@given(HOSTILE)
def test_no_text_breaks_a_comment(text: str) -> None:
    for safe in (comment_safe(text), quote_comment(text), block_comment(["x", text, "y"])[2:-2].replace("\n", "")):
        for bad in ("*/", "/*", "??", "\\", "\n", "\r"):
            assert bad not in safe
        assert all(char.isprintable() for char in safe)
    assert len(comment_safe(quote_comment(text))) < 150


@settings(max_examples=300, deadline=None)
@given(st.text(min_size=1))
def test_a_c_name_has_a_character_a_byte(text: str) -> None:
    name = c_name(text)
    assert len(name) == len(text.encode())
    assert re.fullmatch(r"[A-Za-z0-9_]+", name)
