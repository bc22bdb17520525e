"""Accelerators that build on others, and that plan for what they are asked to save: as their designers write them."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from support.hostile.vendor import HEAD, description, vendor_folder
from uaccel.accelerator import Accelerator, load_accelerator, module_of, planning_for
from uaccel.errors import AcceleratorError
from uaccel.util import files

BUILT_ON = """from pathlib import Path

from uaccel.accelerator import module_of

ACCELERATOR = module_of({base!r}).describe(Path(__file__).parent)
"""
FAMILY = """
from pathlib import Path

def describe(folder):
    base = Path() if folder == HERE else HERE
    return Accelerator(folder.name, "one of a family", [Operation("tanh", "relax.tanh", run)], ["tiny.h"],
                       folder=folder, base=base)

HERE = Path(__file__).parent
"""


@pytest.fixture
def family(tmp_path: Path) -> Path:
    text = description(FAMILY).partition("\nACCELERATOR = ")[0]
    return vendor_folder(tmp_path / "family", f"{text}\nACCELERATOR = describe(HERE)\n")


def member(folder: Path, base: str) -> Path:
    """A folder with nothing but a description, which builds on another one's."""
    folder.mkdir()
    (folder / "accelerator.py").write_text(BUILT_ON.format(base=base))
    return folder


def complaint(folder: Path) -> str:
    with pytest.raises(AcceleratorError) as caught:
        load_accelerator(str(folder))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_with_nothing_but_a_description(family: Path, tmp_path: Path) -> None:
    found = load_accelerator(str(member(tmp_path / "small", f"{family}/accelerator.py")))
    assert (found.name, found.folder, found.base) == ("small", tmp_path / "small", family)
    assert found.files == load_accelerator(str(family)).files


def test_an_own_file_comes_before_the_bases_of_the_same_place_alone(family: Path, tmp_path: Path) -> None:
    folder = member(tmp_path / "small", str(family))
    (folder / "device").mkdir()
    (folder / "device/tiny.h").write_text("#define OWN\n")
    found = load_accelerator(str(folder))
    assert found.devices == [folder / "device/tiny.h", family / "device/tiny_device.c"]
    assert found.drivers == [family / "driver/tiny.h", family / "driver/tiny_driver.c"]


def test_a_base_that_is_installed(family: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "family_package"
    (family / "accelerator.py").rename(family / "__init__.py")
    family.rename(package)
    monkeypatch.syspath_prepend(tmp_path)
    entry = EntryPoint("family_package", "family_package:ACCELERATOR", files.ACCELERATOR_GROUP)
    monkeypatch.setattr(files, "entry_points", lambda group: [entry])
    assert load_accelerator(str(member(tmp_path / "small", "family_package"))).base == package


def test_a_base_whose_name_is_taken_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "entry_points", lambda group: [EntryPoint("npu", "other:X", group)])
    with pytest.raises(AcceleratorError, match=r"^two accelerators are called 'npu': .*\(other:X\); rename one"):
        module_of("npu")


def test_a_base_that_nobody_knows(tmp_path: Path) -> None:
    folder = member(tmp_path / "small", "nuc_fgpa")
    text = complaint(folder)
    assert text.startswith(f"{folder}/accelerator.py: no accelerator 'nuc_fgpa'; did you mean 'nuc_fpga'?; there are: ")


def test_a_base_that_cannot_be_imported(tmp_path: Path) -> None:
    broken = vendor_folder(tmp_path / "broken", "1 / 0\n")
    folder = member(tmp_path / "small", str(broken))
    assert complaint(folder) == (
        f"{folder}/accelerator.py: {broken}/accelerator.py cannot be imported: "
        "ZeroDivisionError: division by zero (accelerator.py, line 1)"
    )


def test_a_circle(tmp_path: Path) -> None:
    wanted = "build on an accelerator that does not need this one"
    one, other = member(tmp_path / "one", f"{tmp_path}/other"), member(tmp_path / "other", f"{tmp_path}/one")
    file = one / "accelerator.py"
    assert complaint(one) == f"{file}: {other}/accelerator.py: {file} builds on itself; {wanted}"
    assert complaint(one).endswith(wanted), "it is no other thing the second time"


def test_a_base_without_the_files(tmp_path: Path) -> None:
    base = vendor_folder(tmp_path / "base", device=False)
    text = description("from pathlib import Path\n", base=f"Path({str(base)!r})")
    folder = vendor_folder(tmp_path / "small", text, driver=False, device=False)
    assert complaint(folder) == (
        f"{folder}/accelerator.py: its device model is missing: no C file in {folder}/device or {base}/device"
    )


@pytest.mark.parametrize("base", ["base", "{}/absent"])
def test_a_base_that_is_no_folder(base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path would mean another folder in each place from which uaccel is called."""
    vendor_folder(tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    text = description("from pathlib import Path\n", base=f"Path({base.format(tmp_path)!r})")
    assert "wanted the absolute path of the folder whose C files it shares" in complaint(
        vendor_folder(tmp_path / "small", text)
    )


def able(folder: Path, objective: str) -> Accelerator:
    return load_accelerator(str(vendor_folder(folder, description(objective=objective))))


def test_those_that_can_plan_for_it_do(tmp_path: Path) -> None:
    """The description that the function returns need not say again where its folder is."""
    frugal = (
        'lambda asked: Accelerator("tiny", f"saves {asked}", [Operation("tanh", "relax.tanh", run)], ["tiny.h"], '
        "alignment=16)"
    )
    accelerator, other = able(tmp_path / "chip", frugal), load_accelerator("nuc_fpga")
    found = planning_for("energy", [other, accelerator])
    assert found[0] is other
    assert (found[1].description, found[1].alignment) == ("saves energy", 16)
    assert found[1].folder == accelerator.folder
    assert planning_for("latency", [other, accelerator]) == [other, accelerator]


def test_that_nobody_can_plan_for_it_is_an_error() -> None:
    chosen = [load_accelerator("nuc_fpga"), load_accelerator("vanilla")]
    assert planning_for("energy", []) == []
    with pytest.raises(AcceleratorError, match=r"^objective energy: nuc_fpga, vanilla cannot plan for it; 'uaccel acc"):
        planning_for("energy", chosen)
    with pytest.raises(AcceleratorError, match=r"^objective 'speed' is unknown; wanted latency or energy$"):
        planning_for("speed", chosen)


WRONG = [
    ("lambda asked: None", "returned NoneType; wanted the Accelerator that plans for it"),
    (
        "lambda asked: 1 / 0",
        f"failed: ZeroDivisionError: division by zero (accelerator.py, line {HEAD.count(chr(10)) + 2})",
    ),
    (
        f"lambda asked: {description(name='asked').rpartition('ACCELERATOR = ')[2].strip()}",
        "returned 'energy' of {folder}; wanted 'tiny' of the same folder",
    ),
]


@pytest.mark.parametrize(("objective", "said"), WRONG)
def test_what_goes_wrong_in_it_is_told(objective: str, said: str, tmp_path: Path) -> None:
    accelerator = able(tmp_path / "chip", objective)
    with pytest.raises(AcceleratorError) as caught:
        planning_for("energy", [accelerator])
    wanted = said.replace("{folder}", str(accelerator.folder))
    assert str(caught.value) == f"{accelerator.folder}: objective('energy') {wanted}"


def test_what_it_returns_is_held_to_the_same_as_any_description(tmp_path: Path) -> None:
    made = 'lambda asked: Accelerator("tiny", "nothing", [], ["tiny.h"])'
    with pytest.raises(AcceleratorError, match=r"chip: it has no operations; list at least one"):
        planning_for("energy", [able(tmp_path / "chip", made)])
