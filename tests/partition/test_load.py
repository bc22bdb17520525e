"""Accelerators found and loaded, and everything that can be wrong with one before a model is there: one line each."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from support.hostile.vendor import HEAD, description, vendor_folder
from uaccel.accelerator import ANY, Operation, load_accelerator, load_accelerators, pattern
from uaccel.errors import AcceleratorError
from uaccel.util import files


def complaint(folder: Path) -> str:
    """One line, which begins with the file."""
    with pytest.raises(AcceleratorError) as caught:
        load_accelerator(str(folder))
    text = str(caught.value)
    assert text.startswith(str(folder / "accelerator.py"))
    assert "\n" not in text
    return text.removeprefix(str(folder / "accelerator.py"))


@pytest.mark.parametrize("written", ["{}", "{}/", "{}/accelerator.py"])
def test_a_folder_by_any_path(written: str, tmp_path: Path) -> None:
    folder = vendor_folder(tmp_path / "my.own-chip")
    found = load_accelerator(written.format(folder))
    assert (found.name, found.folder) == ("tiny", folder)
    assert [path.name for path in found.drivers] == ["tiny.h", "tiny_driver.c"]
    assert [path.name for path in found.devices] == ["tiny.h", "tiny_device.c"]


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vendor_folder(tmp_path / "chip")
    monkeypatch.chdir(tmp_path)
    assert load_accelerator("./chip").folder == load_accelerator("chip/").folder == tmp_path / "chip"
    with pytest.raises(
        AcceleratorError, match=r"^no accelerator 'chip'; there are: .*; or give the path of its folder"
    ):
        load_accelerator("chip")
    monkeypatch.chdir(tmp_path / "chip")
    assert load_accelerator(".").folder == tmp_path / "chip"


def test_files_of_a_folder_import_each_other(tmp_path: Path) -> None:
    """And two folders' files of one name are not mixed up."""
    for name in ("one", "two"):
        text = (
            HEAD
            + "from .numbers import NAME\nfrom .deep.er import ALIGNMENT\n"
            + description(name="NAME", alignment="ALIGNMENT").removeprefix(HEAD)
        )
        folder = vendor_folder(tmp_path / name, text)
        (folder / "numbers.py").write_text(f'NAME = "{name}"\n')
        (folder / "deep").mkdir()
        (folder / "deep" / "er.py").write_text("from ..numbers import NAME\nALIGNMENT = 8 if NAME == 'one' else 16\n")
    found = load_accelerators([str(tmp_path / "one"), str(tmp_path / "two")])
    assert [(entry.name, entry.alignment) for entry in found] == [("one", 8), ("two", 16)]


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(AcceleratorError, match=r"^no accelerator 'nuc_fgpa'; did you mean 'nuc_fpga'"):
        load_accelerator("nuc_fgpa")
    with pytest.raises(AcceleratorError, match=f"^no folder {tmp_path}/absent; wanted an accelerator's"):
        load_accelerator(f"{tmp_path}/absent/")
    with pytest.raises(AcceleratorError, match=r"is no accelerator's folder: it has no accelerator\.py$"):
        load_accelerator(str(tmp_path))


def test_one_name_twice(tmp_path: Path) -> None:
    one, other = vendor_folder(tmp_path / "one"), vendor_folder(tmp_path / "other")
    with pytest.raises(AcceleratorError) as caught:
        load_accelerators([str(one), str(other)])
    assert str(caught.value) == (
        f"two accelerators are called 'tiny': {one}/accelerator.py and {other}/accelerator.py; rename one of them"
    )
    with pytest.raises(AcceleratorError, match=f"^accelerator '{one}/' is given twice; name it once$"):
        load_accelerators([str(one), f"{one}/"])
    copy = vendor_folder(tmp_path / "copy", description(name='"nuc_fpga"'))
    with pytest.raises(AcceleratorError, match=r"two accelerators are called 'nuc_fpga': .*/accelerators/nuc_fpga/acc"):
        load_accelerators(["nuc_fpga", str(copy)])
    assert load_accelerator(str(copy)).folder == copy, "alone it is what the user says it is"


def install(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> None:
    monkeypatch.setattr(files, "entry_points", lambda group: [entry for entry in entries if entry.group == group])


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "uaccel.accelerators")


def package(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with an accelerator, as far as Python's imports are concerned."""
    home = vendor_folder(folder / name, text)
    (home / "accelerator.py").rename(home / "__init__.py")
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return home


def test_one_that_a_package_installs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = package(tmp_path, "tiny_package", description(), monkeypatch)
    same = entry("tiny", "tiny_package:ACCELERATOR")
    install(monkeypatch, same, entry("broken", "nowhere:X"), same)
    assert load_accelerator("tiny").folder == home
    with pytest.raises(AcceleratorError, match=r"accelerator 'broken' of .* cannot be imported: ModuleNotFoundError: "):
        load_accelerator("broken")


def test_a_package_with_another_name_than_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = package(tmp_path, "other_package", description(), monkeypatch)
    install(monkeypatch, entry("huge", "other_package:ACCELERATOR"))
    with pytest.raises(AcceleratorError) as caught:
        load_accelerator("huge")
    assert str(caught.value) == (
        f"{home}/__init__.py: the accelerator is called 'tiny', and an installed package (other_package:ACCELERATOR) "
        "installs it as 'huge'; use one name"
    )


@pytest.mark.parametrize("error", ["1 / 0", "raise SystemExit(7)"])
def test_a_package_that_cannot_be_imported(error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(tmp_path, "bad_package", f"\n{error}\n", monkeypatch)
    install(monkeypatch, entry("tiny", "bad_package:ACCELERATOR"))
    with pytest.raises(AcceleratorError, match=r"^accelerator 'tiny' of .* \(__init__.py, line 2\)$"):
        load_accelerator("tiny")


def test_a_clash_of_names_is_about_that_name_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, entry("tiny", "a:X"), entry("tiny", "b:X"), entry("nuc_fpga", "c:X"))
    with pytest.raises(AcceleratorError, match=r"two accelerators are called 'tiny': .*\(a:X\) and .*\(b:X\); rename"):
        load_accelerator("tiny")
    with pytest.raises(AcceleratorError, match=r"called 'nuc_fpga': .*/nuc_fpga/accelerator.py and .*\(c:X\); rename"):
        load_accelerator("nuc_fpga")
    assert load_accelerator("vanilla").name == "vanilla"


IMPORTS = [
    ("import nothing_of_that_name", " cannot be imported: ModuleNotFoundError: No module named "),
    ("x = (", " cannot be imported: SyntaxError: '(' was never closed (accelerator.py, line 1)"),
    ("\n\nraise SystemExit(3)", " cannot be imported: SystemExit: 3 (accelerator.py, line 3)"),
    ("\nraise ValueError()", " cannot be imported: ValueError: no message (accelerator.py, line 2)"),
    (
        "from uaccel.accelerator import Accelerator\nAccelerator(nam='x')",
        "unexpected keyword argument 'nam' (accelerator.py, line 2)",
    ),
    ("from .missing import x", " cannot be imported: ModuleNotFoundError: "),
    ("", " must define ACCELERATOR = Accelerator(...), and defines none"),
    ("ACCELERATOR = 5", " must define ACCELERATOR = Accelerator(...), and has int under that name"),
]


@pytest.mark.parametrize(("text", "wanted"), IMPORTS, ids=range(len(IMPORTS)))
def test_a_file_that_cannot_be_imported(text: str, wanted: str, tmp_path: Path) -> None:
    assert wanted in complaint(vendor_folder(tmp_path / "chip", text))


def test_an_error_in_another_file_of_the_folder(tmp_path: Path) -> None:
    folder = vendor_folder(tmp_path / "chip", "from . import other\n")
    (folder / "other.py").write_text("\n\nnumbers = {}\nnumbers['x']\n")
    assert complaint(folder) == " cannot be imported: KeyError: 'x' (other.py, line 4)"


def test_a_file_that_was_mended_is_read_again(tmp_path: Path) -> None:
    folder = vendor_folder(tmp_path / "chip", "1 / 0\n")
    assert "ZeroDivisionError" in complaint(folder)
    (folder / "accelerator.py").write_text(description(description='"mended, and longer than before"'))
    assert load_accelerator(str(folder)).description == "mended, and longer than before"


NAME = "wanted lower-case letters, digits and underscores, a letter first, no word of C and not 'cpu'"
LOWER = 'Operation("t", "relax.tanh"'
ADD = "Instruction('add', 0, run"
FIELDS = [
    ("name", "'NucFpga'", f"the accelerator's name 'NucFpga' cannot be used; {NAME}"),
    ("name", "'cpu'", f"the accelerator's name 'cpu' cannot be used; {NAME}"),
    ("name", "'int'", f"the accelerator's name 'int' cannot be used; {NAME}"),
    ("name", r"'a\n'", rf"the accelerator's name 'a\n' cannot be used; {NAME}"),
    ("name", "5", f"the accelerator's name 5 cannot be used; {NAME}"),
    ("description", "''", "description is ''; wanted a line that says what it is"),
    ("description", r"'a\nb'", r"description is 'a\nb'; wanted a line that says what it is"),
    ("description", r"'a\x1b[2J'", r"description is 'a\x1b[2J'; wanted a line that says what it is"),
    ("description", "None", "description is None; wanted a line that says what it is"),
    ("operations", "[]", "it has no operations; list at least one, or nothing can be offloaded"),
    ("operations", f"{LOWER}, run)", "operations is Operation("),
    ("operations", "[run]", "operations holds <function run at "),
    ("operations", f"[{LOWER}, run), {LOWER}, run)]", "two operations are called 't'; names must differ"),
    ("operations", f"[{LOWER})]", "operation 't' has no 'lower', and the accelerator no 'stream' that would take it"),
    ("operations", f"[{LOWER}, 'run')]", "lower of operation 't' is 'run'; wanted a function, or None"),
    ("operations", f"[{LOWER}, run, cost=5)]", "cost of operation 't' is 5; wanted a function, or None"),
    ("operations", f"[{LOWER}, run, expand=5)]", "expand of operation 't' is 5; wanted a function, or None"),
    ("operations", f"[{LOWER}, run, None)]", "check of operation 't' is None; wanted a function that returns a reason"),
    (
        "operations",
        f"[{LOWER}, run, roundings=['float16'])]",
        "roundings of operation 't' is ['float16']; wanted some of tflite, float32",
    ),
    ("operations", f"[{LOWER}, run, roundings='tflite')]", "roundings of operation 't' is 'tflite'; wanted a list of "),
    ("operations", f"[{LOWER}, run, doc=5)]", "doc of operation 't' is 5; wanted text"),
    ("operations", '[Operation("a b", "relax.tanh", run)]', "an operation is called 'a b'; wanted letters, digits"),
    ("headers", "'tiny.h'", "headers is 'tiny.h'; wanted a list of names of files"),
    ("headers", "[]", "headers is empty; name the driver's headers that declare what 'lower' calls"),
    ("headers", "[5]", "headers holds 5; wanted names of files, of letters, "),
    ("headers", r"['a\"\n#error']", r"""headers holds 'a"\n#error'; wanted names of files, of letters, """),
    ("headers", "['big.h']", "its header big.h is missing in "),
    ("stream", "5", "stream is 5; wanted a function that takes a Region and returns Lowered"),
    ("tolerance", "-1", "tolerance is -1; wanted a number from 0, which claims exactness"),
    ("tolerance", "float('nan')", "tolerance is nan; wanted a number from 0, which claims exactness"),
    ("tolerance", "'1'", "tolerance is '1'; wanted a number from 0, which claims exactness"),
    ("alignment", "12", "alignment is 12; wanted a power of two, 4096 bytes at most"),
    ("alignment", "0", "alignment is 0; wanted a power of two, 4096 bytes at most"),
    ("alignment", "4.0", "alignment is 4.0; wanted a power of two, 4096 bytes at most"),
    ("alignment", "True", "alignment is True; wanted a power of two, 4096 bytes at most"),
    ("memories", "[4096]", "memories is [4096]; wanted names and sizes in bytes, for example "),
    ("memories", "{'rows': '4K'}", "memories has 'rows': '4K'; wanted a name and its size in bytes"),
    ("memories", "{'rows': 0}", "memories has 'rows': 0; wanted a name and its size in bytes"),
    ("parameters", "7", "parameters is 7; wanted values by name, for example "),
    ("parameters", "{'a b': (1, 2)}", "parameters has 'a b': (1, 2); wanted a name and its values, numbers or words, "),
    ("parameters", "{'a': ()}", "parameters has 'a': (); wanted a name and its values"),
    ("parameters", "{'a': (1, 1)}", "parameters has 'a': (1, 1); wanted a name and its values"),
    ("parameters", "{'a': (1, 2.5)}", "parameters has 'a': (1, 2.5); wanted a name and its values"),
    ("parameters", "{'a': tuple(range(33))}", "parameters has 33 combinations of values; wanted 32 at most"),
    ("before_partition", "run", "before_partition is <function run at "),
    ("on_region", "[5]", "on_region holds 5; wanted passes, which take a module and return one"),
    ("after_lowering", "'x'", "after_lowering is 'x'; wanted a list of passes"),
    ("objective", "'energy'", "objective is 'energy'; wanted a function that takes 'latency' or 'energy'"),
    ("unit", "5", "unit is 5; wanted a function that makes the state of its instructions"),
    ("instructions", "[5]", "instructions holds 5; wanted Instruction(...)s"),
    ("instructions", "[Instruction('a4', 0, run)]", "an instruction is called 'a4'; wanted lower-case letters, "),
    ("instructions", "[Instruction('add', 0, 5)]", "meaning of instruction 'add' is 5; wanted a function of unit, "),
    ("instructions", "[Instruction('add', 8, run)]", "funct3 of instruction 'add' is 8; wanted 0 to 7"),
    ("instructions", f"[{ADD}, 128)]", "funct7 of instruction 'add' is 128; wanted 0 to 127"),
    ("instructions", f"[{ADD}, count=0)]", "count of instruction 'add' is 0; wanted 1 to 128"),
    ("instructions", f"[{ADD}, 1, 128)]", "instruction 'add' has funct7 up to 128; wanted 127 at most"),
    ("instructions", f"[{ADD}), {ADD}, 1)]", "two instructions are called 'add'; names must differ"),
    ("instructions", f"[{ADD}, 0, 4), Instruction('sub', 0, run, 3)]", "instructions 'add' and 'sub' are both "),
    ("instructions", f"[{ADD})]", "it has instructions and a device; describe what is in the core "),
    ("base", "'/'", "base is '/'; wanted the absolute path of the folder whose C files it shares"),
    ("folder", "'x'", "folder is 'x'; wanted a pathlib.Path, or nothing: the file's own folder"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value", "wanted"), FIELDS, ids=[f"{row[0]}={row[1]}" for row in FIELDS])
def test_a_field_that_makes_no_sense(field: str, value: str, wanted: str, tmp_path: Path) -> None:
    fields: dict[str, Any] = {field: value}
    text = complaint(vendor_folder(tmp_path / "chip", description(**fields)))
    assert text.startswith(f": {wanted}")


@pytest.mark.parametrize(("part", "what"), [("driver", "driver"), ("device", "device model")])
def test_a_part_that_is_missing(part: str, what: str, tmp_path: Path) -> None:
    folder = vendor_folder(tmp_path / "chip", driver=part != "driver", device=part != "device")
    assert complaint(folder) == f": its {what} is missing: no C file in {folder}/{part}"


NEVER = [
    ("5", "operation 'x' never matches: it is int, wanted a pattern or an operator's name"),
    ("ANY", "its outermost part is no operator call, so that nothing says which operator is meant"),
    ('"conv2e"', "there is no operator 'conv2e'; did you mean 'uaccel.conv2d'"),
    ('"relax.tanhh"', "there is no operator 'relax.tanhh'; did you mean 'relax.tanh'"),
    ('pattern("relax.tanh", ANY, ANY)', "never matches: relax.tanh takes 1 operands and the pattern has 2"),
    ('pattern("relax.exp", pattern("relax.add", ANY, ANY, ANY))', "relax.add takes 2 operands and the pattern has 3"),
    ('pattern("relax.exp", pattern("relax.tanh", ANY, ANY) | pattern("relax.tanh", ANY, ANY))', "tanh takes 1"),
    ('pattern("relax.add", 5)', "operand 1 of relax.add is 5, wanted a pattern or an operator's name"),
    ('pattern("relax.add", "relax.tnah")', "there is no operator 'relax.tnah'; did you mean 'relax.tanh'"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "wanted"), NEVER, ids=[row[0] for row in NEVER])
def test_a_pattern_that_never_matches(written: str, wanted: str, tmp_path: Path) -> None:
    text = complaint(vendor_folder(tmp_path / "chip", description(operations=f'[Operation("x", {written}, run)]')))
    assert wanted in text
    assert text.endswith(f"(accelerator.py, line {HEAD.count(chr(10)) + 2})")


def test_a_choice_of_which_one_can_match_is_fine() -> None:
    impossible = pattern("relax.tanh", ANY, ANY)
    made = Operation("x", impossible | pattern("relax.exp"), lambda region: ())
    assert made.operators == ["relax.tanh", "relax.exp"]
    assert Operation("x", "add").operators == ["uaccel.add"]
