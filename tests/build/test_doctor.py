"""What is found of programs and packages, and what doctor makes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from uaccel.board import load_board
from uaccel.build import programs
from uaccel.build.doctor import PYTHON_PACKAGES, PythonPackage, abilities, check_package, examine
from uaccel.build.programs import (
    PROGRAMS,
    HostTool,
    Version,
    VersionCheck,
    check_program,
    find_program,
    is_before,
    missing_programs,
    parse_version,
)
from uaccel.errors import ToolError

WIDGET = HostTool(
    "widget",
    (2, 1),
    "widgets",
    apt=("widget-tools", "libwidget-dev"),
    called=("widget", "wdg"),
    variable="WIDGET",
    required=True,
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH, empty."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("WIDGET", raising=False)
    return tmp_path


def place(folder: Path, name: str, answer: str, status: int = 0) -> str:
    """A program that answers --version."""
    file = folder / name
    file.write_text(f"#!/bin/sh\necho '{answer}'\nexit {status}\n")
    file.chmod(0o755)
    return str(file)


@pytest.fixture
def debian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uaccel.build.programs.uses_apt", lambda: True)
    monkeypatch.setattr("os.geteuid", lambda: 1000)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("gcc (Debian 12.2.0-14+deb12u1) 12.2.0", (12, 2, 0)),
        ("arm-none-eabi-gcc (15:12.2.rel1-1) 12.2.1 20221205", (12, 2, 1)),
        ("Debian clang version 14.0.6", (14, 0, 6)),
        ("riscv64-unknown-elf-gcc () 12.2.0", (12, 2, 0)),
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3)", (7, 2, 22)),
        ("cmake version 3.25.1", (3, 25, 1)),
        ("GNU Make 4.3", (4, 3)),
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", (7, 2, 22)),
        ("0.27.0.post1", (0, 27, 0)),
        ("nextpnr-ice40 -- Next Generation Place and Route (Version 0.4-1+b1)", (0, 4)),
        ("Yosys 0.23 (git sha1 7ce5011c24b)", (0, 23)),
        ("no number here", None),
    ],
)
def test_versions_as_programs_tell_them(text: str, version: Version | None) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("version", "other", "before"),
    [
        ((3, 9), (3, 10), True),
        ((3, 10), (3, 9), False),
        ((3, 16), (3, 16, 0), False),
        ((3, 16, 0), (3, 16), False),
        ((3,), (3, 0, 1), True),
    ],
)
def test_order_of_versions(version: Version, other: Version, before: bool) -> None:
    assert is_before(version, other) is before


def test_a_program_that_is_there(folder: Path) -> None:
    path = place(folder, "widget", "widget 2.1.5")
    check = check_program(WIDGET)
    assert (check.status, check.version, check.path, check.fix) == ("ok", "2.1.5", path, None)


def test_the_first_candidate_that_is_new_enough_is_taken(folder: Path) -> None:
    place(folder, "widget", "widget 1.9")
    path = place(folder, "wdg", "wdg 3.0")
    check = check_program(WIDGET)
    assert (check.status, check.version, check.path) == ("ok", "3.0", path)


def test_a_program_that_is_too_old(folder: Path) -> None:
    path = place(folder, "widget", "widget 1.9")
    check = check_program(WIDGET)
    assert (check.status, check.version, check.path) == ("too old", "1.9", path)
    assert check.detail == f"{path} is version 1.9; wanted 2.1 or later"
    assert check.fix == "install widget or wdg 2.1 or later, first in PATH"


@pytest.mark.parametrize(("answer", "status"), [("widget 3.0", 1), ("hello", 0)])
def test_a_program_that_does_not_work(folder: Path, answer: str, status: int) -> None:
    path = place(folder, "widget", answer, status)
    check = check_program(WIDGET)
    assert (check.status, check.detail) == ("broken", f"{path}: --version fails or tells no version")


@pytest.mark.usefixtures("folder", "debian")
def test_a_missing_program_comes_with_the_command_that_gets_it() -> None:
    check = check_program(WIDGET)
    assert (check.status, check.version, check.path) == ("missing", None, None)
    assert check.detail == "widget or wdg: not found"
    assert check.fix == "sudo apt-get install -y --no-install-recommends widget-tools libwidget-dev"


@pytest.mark.usefixtures("folder")
def test_elsewhere_a_missing_program_comes_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uaccel.build.programs.uses_apt", lambda: False)
    wanted = "install widget or wdg with this system's package manager and see that it is in PATH"
    assert check_program(WIDGET).fix == wanted


def test_the_environment_may_name_the_program_with_words_behind_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place(folder, "widget", "widget 3.0")
    path = place(folder, "other", "other 4.0")
    monkeypatch.setenv("WIDGET", "other -m32")
    monkeypatch.setattr("uaccel.build.programs.PROGRAMS", (WIDGET,))
    found = find_program("widget")
    assert (found.command, found.version, str(found.path)) == ((path, "-m32"), (4, 0), path)


@pytest.mark.usefixtures("debian")
def test_a_name_from_the_environment_that_is_not_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(folder, "widget", "widget 3.0")
    monkeypatch.setenv("WIDGET", "nowhere")
    assert check_program(WIDGET).detail == "WIDGET names nowhere: not found"


@pytest.mark.usefixtures("folder", "debian")
def test_who_needs_a_program_that_is_missing_hears_it_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uaccel.build.programs.PROGRAMS", (WIDGET,))
    with pytest.raises(ToolError) as caught:
        find_program("widget")
    assert str(caught.value) == (
        "widget (needed for widgets): widget or wdg: not found; to get it: "
        "sudo apt-get install -y --no-install-recommends widget-tools libwidget-dev"
    )


def test_a_program_from_the_package_index_is_found_beside_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the virtual environment is not the shell's."""
    pipped = HostTool("gadget", (1,), "gadgets", pip="gadget-tool")
    assert check_program(pipped).fix == f"{sys.executable} -m pip install gadget-tool"
    beside = folder / "venv"
    beside.mkdir()
    monkeypatch.setattr("sys.executable", str(beside / "python"))
    path = place(beside, "gadget", "1.2")
    assert (check_program(pipped).status, check_program(pipped).path) == ("ok", path)
    place(beside, "widget", "widget 3.0")
    assert check_program(WIDGET).status == "missing", "of a program that pip does not bring"


def test_a_version_may_be_told_on_standard_error(folder: Path) -> None:
    place(folder, "widget", "")
    (folder / "widget").write_text("#!/bin/sh\necho 'Open Widget 3.0' >&2\n")
    assert check_program(WIDGET).version == "3.0"


def test_set_up_installs_what_is_missing_and_no_more(folder: Path) -> None:
    brought = replace(WIDGET, brought_by="test")
    assert missing_programs("setup", (brought,)) == []
    assert missing_programs("test", (brought,)) == missing_programs("test-full", (brought,)) == [brought]
    place(folder, "widget", "widget 1.9")
    assert missing_programs("test", (brought,)) == [], "a newer package is not what apt-get would bring"


@pytest.mark.usefixtures("debian")
@pytest.mark.parametrize("sudo", [True, False])
def test_who_cannot_become_root_is_shown_the_package_index(folder: Path, sudo: bool) -> None:
    if sudo:
        place(folder, "sudo", "")
    fix = check_program(replace(WIDGET, pip="widget-wheel")).fix or ""
    assert fix.startswith("sudo apt-get" if sudo else f"{sys.executable} -m pip install widget-wheel")


@pytest.mark.parametrize(
    ("text", "apt"),
    [
        ("ID=debian\n", True),
        ('NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n', True),
        ("ID=fedora\n", False),
        ("# nothing\n", False),
    ],
)
def test_which_systems_use_apt(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, apt: bool) -> None:
    place(folder, "apt-get", "")
    release = folder / "os-release"
    release.write_text(text)
    monkeypatch.setattr(programs, "_OS_RELEASE", release)
    assert programs.uses_apt() is apt


@pytest.mark.parametrize(
    ("requirement", "status", "detail"),
    [
        ("numpy>=1.26", "ok", None),
        ("numpy>=99", "too old", "; wanted numpy>=99"),
        ("numpy>=1,<1.5", "too new", "; wanted numpy>=1,<1.5"),
        ("nonesuch-package>=1", "missing", "not installed"),
    ],
)
def test_python_packages(requirement: str, status: str, detail: str | None) -> None:
    check = check_package(PythonPackage(requirement, "numpy", "tests", "contributors"))
    assert check.status == status
    assert (check.detail or "").endswith(detail or "")
    if status != "ok":
        assert check.fix is not None
        assert check.fix.startswith(f"{sys.executable} -m pip install ")
        assert requirement in check.fix


def test_a_required_package_that_cannot_be_imported() -> None:
    check = check_package(PythonPackage("numpy>=1", "no_such_module", "tests"), thorough=True)
    assert check.status == "broken"
    assert check.detail == ("import no_such_module fails: ModuleNotFoundError: No module named 'no_such_module'")


def test_a_package_whose_library_is_lost_is_seen_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    information = tmp_path / "gadget-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: gadget\nVersion: 1.0\n")
    (information / "RECORD").write_text("gadget/core.so,,3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    library = tmp_path / "gadget" / "core.so"
    library.parent.mkdir()
    library.write_bytes(b"abc")
    gadget = PythonPackage("gadget>=1", "gadget", "tests")
    assert check_package(gadget).status == "ok"
    library.write_bytes(b"a")
    assert check_package(gadget).detail == f"{library} is not as it was installed"


def ok(name: str) -> VersionCheck:
    return VersionCheck(name, "ok", "1", None, False, "tests", None, None)


def missing(name: str) -> VersionCheck:
    return VersionCheck(name, "missing", None, None, False, "tests", "not found", "get it")


@pytest.mark.usefixtures("debian")
def test_each_thing_that_cannot_be_done_comes_with_one_line() -> None:
    checks = [ok("apache-tvm"), ok("numpy"), ok("tflite"), missing("onnx"), missing("torch"), missing("torchao")]
    checks += [
        missing("tflite-micro"),
        ok("cmake"),
        ok("C compiler"),
        missing("arm-none-eabi-gcc"),
        missing("qemu-system-arm"),
    ]
    checks += [ok("verilator"), missing("amaranth"), missing("yosys"), missing("nextpnr-ecp5"), ok("nextpnr-ice40")]
    can = {ability.what: ability for ability in abilities(checks, [load_board("host"), load_board("mps2_an386")])}
    pip = f"{sys.executable} -m pip install"
    assert {what: ability.fix for what, ability in can.items()} == {
        "TFLite models": None,
        "ONNX models": f"{pip} 'onnx>=1.17'",
        "PyTorch models": f"{pip} --index-url https://download.pytorch.org/whl/cpu 'torch>=2.13' && "
        f"{pip} 'torchao>=0.18'",
        "verdicts of --verify that rest on TFLite's own runtime": f"{pip} 'tflite-micro>=0.dev20240101'",
        "verdicts of --verify that rest on ONNX Runtime": f"{pip} 'onnx>=1.17'",
        "quantising ONNX models": f"{pip} 'onnx>=1.17'",
        "accelerators' own RTL": None,
        "RTL written in Amaranth": f"{pip} 'amaranth>=0.5'",
        "area and clock of RTL on ECP5": "sudo apt-get install -y --no-install-recommends yosys && "
        f"{pip} 'uaccel[synth]'",
        "area and clock of RTL on iCE40": "sudo apt-get install -y --no-install-recommends yosys",
        "board host, this computer": None,
        "emulated boards: mps2_an386": "sudo apt-get install -y --no-install-recommends "
        "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm",
    }
    assert can["emulated boards: mps2_an386"].missing == ("arm-none-eabi-gcc", "qemu-system-arm")


@pytest.mark.slow
def test_doctor_looks_at_everything_once() -> None:
    names = [check.name for check in examine(everything=True)]
    assert "clang" not in [check.name for check in examine()]
    wanted = [
        "python",
        "uaccel",
        *(package.name for package in PYTHON_PACKAGES),
        *(program.name for program in PROGRAMS),
    ]
    assert names == wanted


def doctor(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": os.environ["PATH"] if path is None else path}
    environment.pop("CC", None)
    command = [sys.executable, "-m", "uaccel", "doctor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)


def test_doctor_finds_this_machine_fit() -> None:
    done = doctor("--json")
    report = json.loads(done.stdout)
    assert [check for check in report["checks"] if check["required"] and check["status"] != "ok"] == []
    assert (report["ok"], done.returncode, done.stderr) == (True, 0, "")
    assert [ability["works"] for ability in report["can"] if ability["what"] == "TFLite models"] == [True]
    keys = {"name", "status", "version", "path", "required", "needed_for", "detail", "fix"}
    assert all(set(check) == keys for check in report["checks"])


def test_doctor_without_programs_says_what_is_missing_and_fails(tmp_path: Path) -> None:
    done = doctor("--json", path=str(tmp_path))
    report = json.loads(done.stdout)
    assert (report["ok"], done.returncode) == (False, 1)
    absent = {check["name"] for check in report["checks"] if check["status"] == "missing"}
    assert absent >= {program.name for program in PROGRAMS if not program.pip and program.brought_by != "test-full"}
    shown = doctor(path=str(tmp_path))
    assert shown.returncode == 1
    assert "C compiler: gcc or clang or cc or python-zig: not found\n" in shown.stdout
    assert shown.stdout.endswith("Something that uaccel needs is missing: see above.\n")
