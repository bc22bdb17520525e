"""``rtl/rtl.toml``: what it says, and what is wrong with it, in one line; nothing is verilated here."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from uaccel.build.rtl import build
from uaccel.build.rtl.build import device_library
from uaccel.build.rtl.description import read_rtl, sources_of
from uaccel.build.rtl.wrapper import glue, ports_of
from uaccel.errors import AcceleratorError, ToolError, UaccelError
from uaccel.runner.request import Devices
from uaccel.util.files import data_dir

GOOD = """
top = "dots"
reset = "rst_n"
clocks = [3, 2]
[registers]
bus = "apb"
prefix = "s_"
window = 0x20
start = 0x08
[memory]
bus = "port"
prefix = "m_"
[parameters]
LANES = 4
"""
HEADER = """
    VL_IN8(&clk,0,0);
    VL_IN8(&rst_n,0,0);
    VL_IN8(&s_psel,0,0); VL_IN8(&s_penable,0,0); VL_IN8(&s_pwrite,0,0); VL_IN8(&s_paddr,4,0);
    VL_IN(&s_pwdata,31,0); VL_OUT(&s_prdata,31,0);
    VL_OUT8(&m_valid,0,0); VL_IN8(&m_ready,0,0); VL_OUT(&m_addr,31,0); VL_IN8(&m_rvalid,0,0); VL_IN(&m_rdata,31,0);
"""


def folder_of(tmp_path: Path, text: str) -> Path:
    (tmp_path / "rtl").mkdir(parents=True)
    (tmp_path / "rtl" / "rtl.toml").write_text(text)
    return tmp_path


def test_what_it_says(tmp_path: Path) -> None:
    rtl = read_rtl(folder_of(tmp_path, GOOD))
    assert (rtl.top, rtl.reset_active, rtl.clocks, rtl.window, rtl.start) == ("dots", 0, (3, 2), 0x20, 8)
    assert rtl.registers is not None
    assert (rtl.registers.bus, [memory.bus for memory in rtl.memories]) == ("apb", ["port"])


def test_constants_may_lie_in_a_flash(tmp_path: Path) -> None:
    text = GOOD.replace('bus = "port"', 'bus = "axi4"\nflash = [20, 7]')
    assert [memory.flash for memory in read_rtl(folder_of(tmp_path, text)).memories] == [(20, 7)]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('top = "dots"', "", "top is missing; wanted the name of the top module"),
        ("clocks = [3, 2]", "clocks = [3]", r"clocks is \[3\]; wanted two numbers: cycles of the device"),
        ("clocks = [3, 2]", 'clock_ = "c"', "unknown key 'clock_'; did you mean 'clock'?; known: "),
        ('bus = "apb"', 'bus = "ahb"', "registers.bus is 'ahb'; wanted one of axi4-lite, apb, wishbone"),
        ('bus = "port"', 'bus = "apb"', "memory.bus is 'apb'; wanted one of axi4, wishbone, port"),
        ("window = 0x20", "", "window is missing; wanted a number from 0 to 16777216"),
        ('prefix = "m_"', "latency = -1", "latency is -1; wanted a number from 0 to 1000"),
        ('prefix = "m_"', "flash = [20, 7]", r"flash is \[20, 7\]; wanted of an axi4 two numbers from 1 to 1000: "),
        ('bus = "port"', 'bus = "axi4"\nflash = [20]', r"flash is \[20\]; wanted of an axi4 two numbers"),
        ('bus = "port"', 'bus = "axi4"\nflash = [0, 7]', r"flash is \[0, 7\]; wanted of an axi4 two numbers"),
        ('prefix = "m_"', 'ports = {vlaid = "v"}', "unknown key 'memory.ports.vlaid'; did you mean 'valid'?"),
        ("[parameters]", "[instructions]", "registers is {'bus': 'apb', 'prefix': 's_', "),
        (GOOD, 'top = "d"\n[instructions]\nbus = "x"', "unknown key 'instructions.bus'; known: prefix, ports"),
        (GOOD, 'top = "d"\n[instructions]\nports = {ready = "x"}', "unknown key 'instructions.ports.ready'"),
        (GOOD, 'top = "dots"', r"registers is missing; wanted a table \[registers\]"),
        ('top = "dots"', "top = [", "is no TOML file"),
    ],
)
def test_what_is_wrong(tmp_path: Path, old: str, new: str, said: str) -> None:
    folder = folder_of(tmp_path, GOOD.replace(old, new))
    with pytest.raises(AcceleratorError) as raised:
        read_rtl(folder)
    assert said.replace("\\", "") in str(raised.value)
    assert str(raised.value).startswith(str(folder / "rtl" / "rtl.toml"))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(AcceleratorError, match=r"an accelerator with RTL describes it there \(.*rtl.md\)"):
        read_rtl(tmp_path)


def test_the_glue_names_ports(tmp_path: Path) -> None:
    rtl = read_rtl(folder_of(tmp_path, GOOD))
    text = glue(rtl, "dots", "Vdots", ports_of(HEADER))
    assert "auto &paddr() { return top->s_paddr; }" in text
    assert "PortMemory<memory0_ports, 4, 2>" in text
    with pytest.raises(AcceleratorError, match=r"module dots has no port s_paddr.*, and apb needs it; it has: clk"):
        glue(rtl, "dots", "Vdots", ports_of(HEADER.replace("s_paddr", "s_adr")))
    with pytest.raises(AcceleratorError, match=r"port m_rdata of dots has 24 bits; wanted a bus of 8, 16, 32 or 64"):
        glue(rtl, "dots", "Vdots", ports_of(HEADER.replace("m_rdata,31", "m_rdata,23")))


def test_without_verilator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"verilator \(needed for running RTL\): .*to get it: "):
        device_library("nuc_fpga", data_dir("accelerators") / "nuc_fpga")


@pytest.mark.skipif(shutil.which("verilator") is None, reason="verilator is not installed")
def test_without_a_cache_a_process_builds_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    monkeypatch.setattr(build, "_MADE_HERE", {})
    monkeypatch.setattr(build._Library, "library", lambda made: Path(made._variant.waves))
    folder = data_dir("accelerators") / "nuc_fpga"
    for waves in ("", "fst", ""):
        assert device_library("nuc_fpga", folder, build.Variant(waves), built.append) == Path(waves)
    assert built == ["verilate nuc_fpga"] * 2


GENERATED = GOOD.replace("[registers]", 'generate = ["python", "make.py"]\npackages = ["numpy>=1"]\n[registers]', 1)


def sources(folder: Path, place: Path, steps: list[str]) -> list[str]:
    place.mkdir()
    return [path.read_text() for path in sources_of(read_rtl(folder), "dots", place, steps.append)]


def test_what_a_generator_writes_is_kept_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UACCEL_CACHE", str(tmp_path / "cache"))
    folder = folder_of(tmp_path, GENERATED)
    (folder / "rtl" / "make.py").write_text("open('dots.v', 'w').write('module a;')")
    steps: list[str] = []
    assert sources(folder, tmp_path / "a", steps) == sources(folder, tmp_path / "b", steps) == ["module a;"]
    assert steps == ["generate the RTL of dots"]
    (folder / "rtl" / "make.py").write_text("open('dots.v', 'w').write('module b;')")
    assert sources(folder, tmp_path / "c", steps) == ["module b;"]
    assert [path.name for path in (folder / "rtl").iterdir() if path.suffix == ".v"] == []


def test_a_generator_finds_the_files_of_another_accelerator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of its own come first, and the other's count as content."""
    monkeypatch.setenv("UACCEL_CACHE", str(tmp_path / "cache"))
    other = folder_of(tmp_path / "other", GENERATED) / "rtl"
    (other / "make.py").write_text("from name import NAME; open('dots.v', 'w').write(f'module {NAME};')")
    (other / "name.py").write_text("NAME = 'a'")
    based = GENERATED.replace("generate", f'base = "{other}"\ngenerate')
    folder = folder_of(tmp_path / "own", based)
    assert sources(folder, tmp_path / "a", []) == ["module a;"]
    (other / "name.py").write_text("NAME = 'b'")
    assert sources(folder, tmp_path / "b", []) == ["module b;"]
    (folder / "rtl" / "name.py").write_text("NAME = 'c'")
    assert sources(folder, tmp_path / "c", []) == ["module c;"]
    (other / "rtl.toml").unlink()
    with pytest.raises(AcceleratorError, match=r"base is '.*'; wanted a folder with rtl.toml, as seen from this one"):
        read_rtl(folder)


@pytest.mark.parametrize(
    ("script", "package", "said"),
    [
        ("raise ValueError('no width')", "numpy>=1", "the generator failed: ValueError: no width"),
        ("", "numpy>=1", "no file is any of *.v, *.sv; name the Verilog in 'sources'"),
        ("", "no-such-package>=2", "no-such-package (needed for the RTL of dots): not installed; to get it: "),
        ("", "numpy>=1000", "; wanted numpy>=1000; to get it: "),
    ],
)
def test_a_generator_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, package: str, said: str
) -> None:
    monkeypatch.setenv("UACCEL_CACHE", str(tmp_path / "cache"))
    folder = folder_of(tmp_path, GENERATED.replace("numpy>=1", package))
    (folder / "rtl" / "make.py").write_text(script)
    with pytest.raises(UaccelError) as raised:
        sources(folder, tmp_path / "a", [])
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("devices", "accelerators", "said"),
    [
        (Devices(waves=Path("a.fst")), ["x"], "--waves is of RTL; add --device rtl"),
        (Devices("rtl"), [], "--device rtl is about an accelerator's RTL, and none is given; add --accelerator"),
        (Devices("rtl", waves_layer="conv"), ["x"], "--waves-layer says which part of a waveform; add --waves"),
        (Devices("rtl", waves=Path("a.txt")), ["x"], "--waves a.txt: wanted a name that ends in .fst or .vcd"),
    ],
)
def test_options_that_make_no_sense(devices: Devices, accelerators: list[str], said: str) -> None:
    with pytest.raises(UaccelError) as raised:
        devices.require_sense(accelerators)
    assert said in str(raised.value)
