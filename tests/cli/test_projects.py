"""create, build, flash and run on projects, of our template and of a third party's."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.models.networks import OWN
from support.run.command import Call, Done, is_exact
from support.run.raw_server import TEMPLATE
from uaccel.cli import app
from uaccel.session.batch import NOT_SHOWN
from uaccel.session.board_ports import hold
from uaccel.session.emulated_board import Desk
from uaccel.util.files import data_dir, write_tar

GESTURE = OWN / "gesture.tflite"
SAMPLES = OWN / "gesture_samples.npz"
THIRD_PARTY = Path(__file__).parents[1] / "build" / "original_template"
SUPPORT = Path(__file__).parents[1] / "support"
RAMP = [-128, -128, -128, -128, 127, -128]


@pytest.fixture(scope="session")
def tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "gesture.tar"
    assert app.main(["compile", str(GESTURE), "-o", str(path)]) == 0
    return path


@pytest.fixture
def third_party(tmp_path: Path) -> Path:
    folder = tmp_path / "template"
    shutil.copytree(THIRD_PARTY, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(SUPPORT / "run" / "original_server.py", folder / "server.py")
    return folder


def good(done: Done) -> Done:
    assert done.status == 0, done.err
    return done


@pytest.mark.slow
def test_from_a_model_to_outputs_by_hand(tmp_path: Path, call: Call) -> None:
    tar, project = tmp_path / "g.tar", tmp_path / "project"
    good(call("compile", GESTURE, "--board", "host", "-o", tar))
    created = good(call("create", tar, project, "--board", "host", "--json")).report
    assert created == {
        "project": str(project),
        "model": "gesture",
        "board": "host",
        "archive": str(tar),
        "template": None,
    }
    built = good(call("build", project, "--json")).report
    assert built == {"project": str(project), "platform": "uaccel", "firmware": str(project / "build" / "firmware")}
    flashed = good(call("flash", project, "--json")).report
    assert flashed == {"project": str(project), "platform": "uaccel", "board": "host", "flashed": False}
    assert good(call("run", project, "--json")).report["outputs"]["softmax_1"]["data"] == RAMP


def sections(page: Path) -> list[str]:
    """What each section of a page shows, in words: what is measured differs from run to run."""
    body = re.sub(r"<(script|style).*?</\1>", "", page.read_text(), flags=re.DOTALL)
    found = [re.sub(r"<[^>]*>", " ", part) for part in re.split("<section", body)[1:]]
    return [" ".join(word for word in re.sub("uaccel run .*", "", part).split() if word.isalpha()) for part in found]


@pytest.mark.parametrize("board", ["host", pytest.param("mps2_an386", marks=pytest.mark.slow)])
def test_a_project_runs_as_its_model_does(board: str, tmp_path: Path, call: Call) -> None:
    """The same fields, the same numbers and the same page, whoever compiled it."""
    if board != "host":
        board_with_tools(board)
    project = tmp_path / "project"
    reports: list[Any] = []
    good(call("compile", GESTURE, "--board", board, "-o", tmp_path / "g.tar"))
    good(call("create", tmp_path / "g.tar", project))
    for subject in ((GESTURE, "--board", board, "--no-workspace-io"), (project,)):
        name = tmp_path / str(len(reports))
        files = ("--outputs", name.with_suffix(".npz"), "--report", name.with_suffix(".html"))
        report = good(call("run", *subject, "--inputs", SAMPLES, *files, "--verify", "layers", "--json")).report
        assert report.pop("project", str(project)) == str(project)
        assert report["source"].pop("command").startswith(f"uaccel run {subject[0]}")
        report.pop("artefacts", None)  # archives of projects may come from elsewhere
        measured = [(report["ram"], "stack"), (report["ram"], "total"), (report, "seconds"), (report, "trace")]
        measured.append((report["latency"], "ms"))
        for holder, key in (*measured, *((layer, "seconds") for layer in report["layers"])):
            holder.pop(key)
        reports.append(report)
    assert reports[0] == reports[1]
    assert reports[0].keys() >= {"source", "graph", "plan", "constants", "decisions", "engines", "target"}
    shown = [sections(tmp_path / f"{number}.html") for number in (0, 1)]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 10
    with np.load(tmp_path / "0.npz") as first, np.load(tmp_path / "1.npz") as second:
        assert first.files == second.files
        for name in first.files:
            np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.slow
def test_a_project_with_an_accelerator_runs_as_its_model_does(tmp_path: Path, call: Call) -> None:
    """Regions, what the driver counted, and who refused what: the archive knows all of it."""
    words = (GESTURE, "-a", "conveyor", "--board", "host")
    good(call("compile", *words, "-o", tmp_path / "g.tar"))
    good(call("create", tmp_path / "g.tar", tmp_path / "project", "--board", "host"))
    from_model = good(call("run", *words, "--json")).report
    from_project = good(call("run", tmp_path / "project", "--json")).report
    assert any(row["region"] for row in from_model["layers"])
    for part in ("accelerators", "layers", "offloaded", "fallback"):
        assert from_project[part] == from_model[part]
        assert from_model[part] != []


@pytest.mark.slow
def test_a_profile_of_a_project(tar: Path, tmp_path: Path, call: Call) -> None:
    good(call("create", tar, tmp_path / "p", "--board", "host"))
    report = good(call("run", tmp_path / "p", "--profile", "--repeat", "3", "--json")).report
    assert report["runs"] == 3
    for layer in report["layers"]:
        view = layer["op"] == "reshape"
        assert layer["calls"] == (0 if view else 3)
        assert (layer["seconds"] is None) == view


@pytest.mark.slow
def test_a_project_is_verified_by_the_model_in_its_archive(tar: Path, tmp_path: Path, call: Call) -> None:
    """Nothing but the folder is needed; and the firmware is what is verified."""
    project = tmp_path / "p"
    good(call("create", tar, project))
    report = good(call("run", project, "--verify", "--inputs", SAMPLES, "--json")).report
    assert is_exact(report, samples=report["runs"])
    assert "every output of 8 samples equals the exact meaning" in good(call("run", project, "--verify")).out
    weights = project / "model" / "codegen" / "host" / "src" / "tvmgen_gesture_weights.c"
    head, brace, rest = weights.read_text().rpartition("{")
    weights.write_text(f"{head}{brace} {int(rest.partition(',')[0]) + 90000},{rest.partition(',')[2]}")
    done = call("run", project, "--verify", "--inputs", SAMPLES, "--json")
    assert done.status == 3, done.err
    difference = done.report["verify"]["first_difference"]
    assert done.complaint.startswith(
        f'verification failed: sample {difference["sample"]}, output "softmax_1", element ['
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda files: files.pop("src/gesture.tflite"), "does not hold its model; compile the model with this uaccel"),
        (
            lambda files: files.update({"src/gesture.tflite": b"another"}),
            "src/gesture.tflite is not the model that its code was made of; compile it anew",
        ),
    ],
    ids=["none", "another"],
)
def test_an_archive_that_cannot_be_verified(
    change: Callable[[dict[str, bytes]], object], complaint: str, tar: Path, tmp_path: Path, call: Call
) -> None:
    with tarfile.open(tar) as archive:
        streams = {member.name: archive.extractfile(member) for member in archive}
        files = {name.removeprefix("./"): stream.read() for name, stream in streams.items() if stream is not None}
    change(files)
    with (tmp_path / "changed.tar").open("wb") as stream:
        write_tar(stream, files)
    good(call("create", tmp_path / "changed.tar", tmp_path / "p"))
    assert complaint in refused(call("run", tmp_path / "p", "--verify", "--json"), 1, "UaccelError")


@pytest.mark.slow
def test_instructions_are_counted_through_the_project_api(tmp_path: Path, call: Call) -> None:
    board_with_tools("mps2_an386")
    good(call("compile", GESTURE, "--board", "mps2_an386", "-o", tmp_path / "g.tar"))
    good(call("create", tmp_path / "g.tar", tmp_path / "p", "--board", "mps2_an386"))
    from_project = good(call("run", tmp_path / "p", "--json")).report
    from_model = good(call("run", GESTURE, "--no-workspace-io", "--board", "mps2_an386", "--json")).report
    assert from_project["instructions"] == from_model["instructions"] > 20_000
    counts = [[layer["instructions"] for layer in report["layers"]] for report in (from_project, from_model)]
    assert counts[0] == counts[1]
    assert from_project["outputs"] == from_model["outputs"]
    by_the_clock = good(call("run", tmp_path / "p", "--option", "run_arguments=-icount shift=0", "--json")).report
    assert by_the_clock["instructions"] == pytest.approx(from_model["instructions"], rel=0.01)
    assert good(call("run", tmp_path / "p", "--option", "run_arguments=", "--json")).report["instructions"] is None


@pytest.mark.slow
def test_what_a_person_sees(tar: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = good(call("create", tar, "p"))
    assert done.out == "  Project   p, model gesture for board host\n  Next      uaccel build p\n"
    assert good(call("build", "p")).out == "  Firmware  p/build/firmware\n"
    assert good(call("flash", "p")).out == (
        "  Flashed   nothing: 'uaccel run' loads the firmware of board host itself\n"
    )
    shown = good(call("run", "p")).out
    for words in ("conv_2d_0", "RAM", "Flash", "softmax_1 (int8 1x6): -128, -128, -128, -128, 127, -128"):
        assert words in shown


@pytest.mark.slow
def test_the_tools_words_are_shown_when_asked_for(tar: Path, tmp_path: Path, call: Call) -> None:
    good(call("create", tar, tmp_path / "p"))
    assert "C compiler" not in good(call("build", tmp_path / "p", "--observe", "--json")).err
    done = good(call("build", tmp_path / "p", "--verbose", "--json"))
    assert "The C compiler identification is" in done.err
    assert done.report["firmware"].endswith("build/firmware")


# ---------------------------------------------------------------------------------------- refusals


def refused(done: Done, status: int, kind: str) -> str:
    assert done.status == status, done.err
    assert done.report == {"error": {"message": done.complaint, "kind": kind, "status": status}}
    return done.complaint


@pytest.mark.parametrize("command", ["build", "flash", "run"])
def test_a_folder_that_is_no_project(command: str, tmp_path: Path, call: Call) -> None:
    complaint = refused(call(command, tmp_path, "--json"), 1, "ProjectApiError")
    assert complaint.startswith(f"{tmp_path} is no project and no template: ")


@pytest.mark.parametrize("command", ["build", "flash", "run"])
def test_a_template_is_no_project(command: str, call: Call) -> None:
    complaint = refused(call(command, TEMPLATE, "--json"), 1, "ProjectApiError")
    assert complaint == f"cannot {command} {TEMPLATE}: it is a template; make a project with 'uaccel create'"


@pytest.mark.parametrize("command", ["build", "flash"])
def test_a_folder_that_is_not_there(command: str, tmp_path: Path, call: Call) -> None:
    complaint = refused(call(command, tmp_path / "none", "--json"), 1, "ProjectApiError")
    assert complaint.startswith(f"{tmp_path / 'none'} is no project and no template: ")


def test_archives_that_are_none(tmp_path: Path, call: Call) -> None:
    project = tmp_path / "p"
    assert refused(call("create", tmp_path / "none.tar", project, "--json"), 1, "UaccelError") == (
        f"cannot read archive {tmp_path / 'none.tar'}: No such file or directory"
    )
    for name, kind in (("m.zip", "a zip"), ("m/", "a folder")):
        assert call("compile", GESTURE, "-o", f"{tmp_path}/{name}").status == 0
        archive = tmp_path / name
        assert refused(call("create", archive, project, "--json"), 1, "UaccelError") == (
            f"archive {archive} is {kind}; projects are made of the tar that 'uaccel compile -o X.tar' writes"
        )
    (tmp_path / "text.tar").write_text("text")
    assert "is no tar file or is damaged" in refused(
        call("create", tmp_path / "text.tar", project, "--board", "host", "--json"), 1, "UaccelError"
    )
    assert not project.exists()


def test_a_folder_that_is_taken(tar: Path, tmp_path: Path, call: Call) -> None:
    (tmp_path / "mine").touch()
    complaint = refused(call("create", tar, tmp_path, "--json"), 1, "ToolError")
    assert complaint == f"{tmp_path} exists already; name a folder that does not"
    assert list(tmp_path.iterdir()) == [tmp_path / "mine"]


def test_a_model_that_does_not_fit_is_compiled_with_a_warning(tmp_path: Path, call: Call) -> None:
    text = (data_dir("boards") / "mps2_an385.toml").read_text().replace('length = "4M"', 'length = "8K"', 1)
    tiny = tmp_path / "tiny.toml"
    tiny.write_text(text)
    tar = tmp_path / "g.tar"
    (warning,) = good(call("compile", GESTURE, "--board", tiny, "-o", tar, "--json")).report["warnings"]
    assert warning.startswith("model gesture does not fit on board tiny: its constants are ")
    complaint = refused(call("create", tar, tmp_path / "p", "--board", tiny, "--json"), 1, "BoardError")
    assert complaint == warning
    complaint = refused(call("create", tar, tmp_path / "p", "--json"), 1, "ToolError")
    assert complaint.startswith(f"archive {tar} holds nothing for a board: {warning}; make it with ")
    good(call("create", tar, tmp_path / "p", "--board", "host"))


def test_kernels_for_a_better_cpu_are_refused(tmp_path: Path, call: Call) -> None:
    tar = tmp_path / "g.tar"
    good(call("compile", GESTURE, "--board", "mps3_an547", "-o", tar))
    complaint = refused(call("create", tar, tmp_path / "p", "--board", "mps2_an386", "--json"), 1, "BoardError")
    assert complaint == (
        "the model was compiled for board mps3_an547, and its kernels need a CPU with helium; cortex-m4 of board "
        "mps2_an386 has none: compile it again with --board mps2_an386"
    )
    assert not (tmp_path / "p").exists()


def test_a_template_means_nothing_for_a_project(tmp_path: Path, call: Call) -> None:
    complaint = refused(call("run", tmp_path, "--template=x", "--json"), 1, "UaccelError")
    assert complaint == "--template is for a model file, and MODEL is a folder; leave it away"


def test_options_of_a_server_without_one(call: Call) -> None:
    complaint = refused(call("run", GESTURE, "--option", "a=b", "--json"), 1, "UaccelError")
    assert complaint == "--option is for the server of a project or a template; give --template, or a project's DIR"


@pytest.mark.parametrize("word", ["x", "=x", ""])
def test_options_without_a_value(word: str, tar: Path, tmp_path: Path, call: Call) -> None:
    complaint = refused(call("create", tar, tmp_path / "p", "--option", word, "--json"), 1, "UaccelError")
    assert complaint == f"--option {word!r}: wanted NAME=VALUE"


def test_options_that_contradict(tar: Path, tmp_path: Path, call: Call) -> None:
    twice = ("--option", "a=1", "--option", "b=1", "--option", "a=2")
    complaint = refused(call("create", tar, tmp_path / "p", *twice, "--json"), 1, "UaccelError")
    assert complaint == "--option a is given twice; leave one away"
    complaint = refused(call("create", tar, tmp_path / "p", "--standalone-crt", tmp_path, "--json"), 1, "UaccelError")
    assert complaint == "--standalone-crt is for the template that copies from it; give --template, or leave it away"


@pytest.mark.slow
def test_a_project_for_another_board(tar: Path, tmp_path: Path, call: Call) -> None:
    good(call("create", tar, tmp_path / "p", "--board", "host"))
    complaint = refused(call("run", tmp_path / "p", "--board", "mps2_an386", "--json"), 1, "UaccelError")
    assert complaint == f"{tmp_path / 'p'} is for board host, not mps2_an386; leave --board away"
    good(call("build", tmp_path / "p"))
    good(call("run", tmp_path / "p", "--board", "host"))


@pytest.mark.slow
def test_a_way_to_run_that_the_board_has_not(tar: Path, tmp_path: Path, call: Call) -> None:
    good(call("create", tar, tmp_path / "p"))
    for options in (["--port", "/dev/ttyNONE"], ["--option", "run=serial"]):
        complaint = refused(call("run", tmp_path / "p", *options, "--json"), 4, "DeviceError")
        assert complaint == "board host does not run by serial; it runs by host"


@pytest.mark.slow
def test_a_board_file_of_the_project_that_is_damaged(tar: Path, tmp_path: Path, call: Call) -> None:
    good(call("create", tar, tmp_path / "p"))
    good(call("build", tmp_path / "p"))
    file = tmp_path / "p" / "board" / "board.json"
    file.write_text("{}")
    complaint = refused(call("run", tmp_path / "p", "--json"), 1, "UaccelError")
    assert complaint == f"{file} is not as it was made: board is missing; make the project anew"
    file.unlink()
    complaint = refused(call("flash", tmp_path / "p", "--json"), 4, "DeviceError")
    assert complaint == f"cannot read {file}: No such file or directory; make the project anew"


@pytest.mark.slow
def test_firmware_of_another_model(tar: Path, tmp_path: Path, call: Call) -> None:
    """The archive in the project is what firmware is held against."""
    good(call("create", tar, tmp_path / "p"))
    good(call("compile", OWN / "residual.tflite", "-o", tmp_path / "r.tar"))
    shutil.copy(tmp_path / "r.tar", tmp_path / "p" / "model.tar")
    complaint = refused(call("run", tmp_path / "p", "--json"), 4, "DeviceError")
    assert "runs another model: gesture " in complaint


@pytest.mark.slow
def test_firmware_that_ends(tar: Path, tmp_path: Path, call: Call) -> None:
    good(call("create", tar, tmp_path / "p"))
    port = tmp_path / "p" / "firmware" / "ports" / "host" / "main.c"
    port.write_text(port.read_text().replace("uaccel_serve();", 'fprintf(stderr, "on fire\\n"); exit(7);'))
    complaint = refused(call("run", tmp_path / "p", "--json"), 4, "TransportClosedError")
    assert complaint == "firmware ended with exit status 7: on fire"


# ---------------------------------------------------------------------------------------- a third party's template


@pytest.mark.slow
def test_a_third_partys_template(tar: Path, third_party: Path, tmp_path: Path, call: Call) -> None:
    project = tmp_path / "p"
    options = ["--option", "project_type=session"]
    report = good(call("create", tar, project, "--template", third_party, *options, "--json")).report
    assert report["template"] == str(third_party)
    built = good(call("build", project, "--json")).report
    assert built == {"project": str(project), "platform": "third party", "firmware": None}
    assert good(call("flash", project, "--json")).report["flashed"] is True
    report = good(call("run", project, "--inputs", SAMPLES, "--verify", "--json")).report
    assert report["verify"]["bit_exact"] is True
    own = good(call("run", GESTURE, "--inputs", SAMPLES, "--json")).report
    assert report["outputs"] == own["outputs"]
    assert report["board"] is None
    assert report["flash"]["code"] is None
    waits = good(call("run", project, "--option", "waits=yes", "--json")).report
    assert waits["outputs"]["softmax_1"]["data"] == RAMP


@pytest.mark.slow
def test_a_model_through_a_third_partys_template(third_party: Path, tmp_path: Path, call: Call) -> None:
    options = ["--template", third_party, "--option", "project_type=session", "--project", tmp_path / "kept"]
    report = good(call("run", GESTURE, *options, "--verify", "layers", "--json")).report
    assert is_exact(report)
    assert report["verify"]["not_compared"] == NOT_SHOWN
    assert "layers_compared" not in report["verify"]
    assert (tmp_path / "kept" / "build" / "app").is_file()
    complaint = refused(call("run", GESTURE, "--template", third_party, "--json"), 1, "UaccelError")
    assert "wants option 'project_type' for generate_project (one of session, nothing)" in complaint


def test_a_third_partys_refusals(tar: Path, third_party: Path, tmp_path: Path, call: Call) -> None:
    project = tmp_path / "p"
    good(call("create", tar, project, "--template", third_party, "--option", "project_type=session"))
    where = f"Project API server of {project}"
    complaint = refused(call("flash", project, "--port", "/dev/x", "--json"), 1, "UaccelError")
    assert complaint == f"{where} (third party) has no option 'port'"
    complaint = refused(call("build", project, "--observe", "--json"), 1, "UaccelError")
    assert complaint == f"{where} (third party) has no option 'observe'"
    complaint = refused(call("build", project, "--option", "compiler=none", "--json"), 1, "ToolError")
    assert complaint.startswith(f"{where}: calling method build (FileNotFoundError: ")


# ---------------------------------------------------------------------------------------- flashing

FLASH_TOOL = """
import json, os, sys
with open({log!r}, "a") as log:
    print(json.dumps([os.getcwd(), *sys.argv]), file=log)
if "fail" in sys.argv:
    print("connecting")
    sys.exit("Error: no probe found")
"""


@pytest.fixture
def bench(tar: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with tools that write down how they are called, first in PATH."""
    folder = tmp_path / "bench"
    folder.mkdir()
    for name in ("openocd", "pyocd", "flash.py"):
        tool = folder / name
        tool.write_text(f"#!{sys.executable}\n" + FLASH_TOOL.format(log=str(folder / "log")))
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


def flashable(bench: Path, tar: Path, flash: str, call: Call) -> Path:
    """A project for a board that is flashed so; its firmware is whatever stands in the build folder."""
    text = (data_dir("boards") / "netduino_plus_2.toml").read_text()
    (bench / "desk.toml").write_text(text[: text.index("# A debug probe")] + flash)
    project = bench / "a project"
    good(call("create", tar, project, "--board", bench / "desk.toml"))
    (project / "build").mkdir()
    (project / "build" / "firmware.elf").write_text("an ELF file")
    return project


def calls(bench: Path) -> list[list[str]]:
    return [json.loads(line) for line in (bench / "log").read_text().splitlines()]


def test_openocd(bench: Path, tar: Path, call: Call) -> None:
    flash = '[flash]\ntool = "openocd"\nconfig = ["interface/a.cfg", "b.cfg"]\ncommands = ["adapter speed 100"]\n'
    project = flashable(bench, tar, flash, call)
    report = good(call("flash", project, "--json")).report
    assert report == {"project": str(project), "platform": "uaccel", "board": "desk", "flashed": True}
    ((where, _, *words),) = calls(bench)
    assert where == str(project / "build")
    assert words == [
        *("-s", str(bench), "-f", "interface/a.cfg", "-f", "b.cfg"),
        *("-c", "adapter speed 100", "-c", "program firmware.elf verify reset exit"),
    ]


def test_pyocd(bench: Path, tar: Path, call: Call) -> None:
    flash = '[flash]\ntool = "pyocd"\ntarget = "stm32f405rg"\noptions = ["--frequency", "1000000"]\n'
    project = flashable(bench, tar, flash, call)
    assert good(call("flash", project)).out == "  Flashed   desk\n"
    ((where, _, *words),) = calls(bench)
    assert where == str(bench)
    elf = str(project / "build" / "firmware.elf")
    assert words == ["flash", "--no-wait", "--target", "stm32f405rg", "--frequency", "1000000", elf]


def test_a_tool_of_the_users_own(bench: Path, tar: Path, call: Call) -> None:
    flash = '[flash]\ntool = "command"\ncommand = ["./flash.py", "{elf}", "{port}"]\nreset = ["./flash.py", "again"]\n'
    project = flashable(bench, tar, flash, call)
    good(call("flash", project, "--port", "/dev/ttyMINE"))
    elf = str(project / "build" / "firmware.elf")
    assert [[where, *words] for where, _, *words in calls(bench)] == [
        [str(bench), elf, "/dev/ttyMINE"],
        [str(bench), "again"],
    ]


def test_a_tool_that_fails_speaks_for_itself(bench: Path, tar: Path, call: Call) -> None:
    flash = '[flash]\ntool = "command"\ncommand = ["flash.py", "fail"]\nreset = ["flash.py", "again"]\n'
    project = flashable(bench, tar, flash, call)
    complaint = refused(call("flash", project, "--json"), 4, "DeviceError")
    assert complaint == "flashing board desk failed (flash.py, exit status 1): Error: no probe found"
    assert len(calls(bench)) == 1
    done = call("flash", project, "--verbose")
    assert "connecting\n" in done.err


def test_a_tool_that_is_missing(bench: Path, tar: Path, call: Call) -> None:
    project = flashable(bench, tar, '[flash]\ntool = "command"\ncommand = ["no-such-tool"]\n', call)
    complaint = refused(call("flash", project, "--json"), 1, "ToolError")
    assert complaint == "no-such-tool (needed for flashing board desk) is not in PATH; install it"
    project.rename(bench / "other")
    project = flashable(bench, tar, '[flash]\ntool = "command"\ncommand = ["./none"]\n', call)
    complaint = refused(call("flash", project, "--json"), 1, "ToolError")
    assert complaint == f"./none (needed for flashing board desk) is not at {bench / 'none'}; install it"
    (bench / "none").write_text("#!/bin/sh\n")
    complaint = refused(call("flash", project, "--json"), 1, "ToolError")
    assert complaint == f"./none (needed for flashing board desk) may not be executed; chmod +x {bench / 'none'}"


def test_a_port_that_is_looked_for(bench: Path, tar: Path, call: Call) -> None:
    project = flashable(bench, tar, '[flash]\ntool = "command"\ncommand = ["flash.py", "{port}"]\n', call)
    for port in ([], ["--port", "auto"]):
        complaint = refused(call("flash", project, *port, "--json"), 4, "DeviceError")
        assert complaint.startswith("port auto: the board file says neither 'usb' nor 'serial_number'")
    good(call("flash", project, "--port", "/dev/ttyMINE"))


def test_a_board_that_somebody_uses(bench: Path, tar: Path, call: Call) -> None:
    project = flashable(bench, tar, '[flash]\ntool = "command"\ncommand = ["flash.py", "{port}"]\n', call)
    with hold("/dev/ttyMINE", user="somebody"):
        complaint = refused(call("flash", project, "--port", "/dev/ttyMINE", "--json"), 4, "BoardBusyError")
    assert "the board at /dev/ttyMINE is in use by process " in complaint
    assert "(somebody)" in complaint
    assert not (bench / "log").exists()


def test_firmware_that_is_not_built(bench: Path, tar: Path, call: Call) -> None:
    project = flashable(bench, tar, '[flash]\ntool = "command"\ncommand = ["flash.py"]\n', call)
    (project / "build" / "firmware.elf").unlink()
    complaint = refused(call("flash", project, "--json"), 1, "ToolError")
    assert complaint == f"there is no {project / 'build' / 'firmware.elf'}; build the project first"


@pytest.mark.slow
def test_a_board_on_the_desk(tar: Path, tmp_path: Path, call: Call) -> None:
    """Built, flashed by the tool that its board file names, and run over its serial port: all through the server."""
    board_with_tools("netduino_plus_2")
    with Desk(tmp_path / "desk") as desk:
        project = tmp_path / "project"
        good(call("create", tar, project, "--board", desk.board_file))
        good(call("build", project))
        assert good(call("flash", project, "--json")).report["flashed"] is True
        report = good(call("run", project, "--port", desk.port, "--json")).report
        assert report["outputs"]["softmax_1"]["data"] == RAMP
        assert report["ram"]["total"] is not None
        desk.order("unplug")
        complaint = refused(call("run", project, "--port", desk.port, "--json"), 4, "DeviceError")
        assert complaint == f"cannot open port {desk.port}: there is none of that name; is the board plugged in?"
