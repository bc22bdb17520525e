"""The plugin, as its users have it: on this computer as a board, and on a stand-in for a real one."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from support.hostile.broken import ZOO
from support.models.networks import OWN
from support.oracle.oracle import Tflm, random_inputs
from support.run.holder import other_process
from testing.conftest import Run
from uaccel.session.emulated_board import Desk

pytest_plugins = ["pytester"]

GESTURE = OWN / "gesture.tflite"
RESIDUAL = OWN / "residual.tflite"

ONE_LINE = f"""
def test_gesture(uaccel_board):
    uaccel_board.check({str(GESTURE)!r})
"""

WRONG_BIT = r"""
import re
import uaccel.runner.compiled
made = uaccel.runner.compiled.archive_of

def damaged(compiled):
    files = made(compiled)
    (name,) = [name for name in files if name.endswith("_weights.c")]
    text = files[name].decode()
    constant = re.search(r"residual_conv_2d_1_(weights|stream)\[", text)
    begin = text.index("{", constant.start()) + 1
    end = text.index(",", begin)
    value = int(text[begin:end]) ^ (64 if constant[1] == "weights" else 1 << 20)
    files[name] = (text[:begin] + str(value) + text[end:]).encode()
    return files

uaccel.runner.compiled.archive_of = damaged
"""
"""The firmware's constants are not the model's: the first one of a convolution in its middle."""


def summary(result: pytest.RunResult) -> list[str]:
    """How each test ended, and why."""
    lines = [line for line in result.outlines if re.match(r"(PASSED|FAILED|ERROR|SKIPPED) ", line)]
    return [re.sub(r" \[1\]|test_it\.py::|test_it\.py:\d+: ", "", line) for line in lines]


def failure(result: pytest.RunResult) -> str:
    """The lines that pytest marks with E."""
    return "\n".join(line[1:].strip() for line in result.outlines if line.startswith("E  "))


# ------------------------------------------------------------------------------------------------ good runs


def test_one_line_is_a_test(run: Run) -> None:
    result = run(ONE_LINE)
    assert summary(result) == ["PASSED test_gesture[host]"]
    result.assert_outcomes(passed=1)


@pytest.mark.slow
def test_frames_in_order(run: Run) -> None:
    """Of a model that remembers; expected are those of the same frames, which are not those of each alone."""
    source = f"""
import numpy as np
import pytest
from uaccel.errors import VerificationError

FRAMES = np.arange(64).reshape(4, 16).astype(np.int8)
STREAM = {str(OWN / "stream.tflite")!r}

def test_stream(uaccel_board):
    together = uaccel_board.check(STREAM, FRAMES, sequence=True).outputs
    with pytest.raises(VerificationError, match="sample 1"):
        uaccel_board.check(STREAM, FRAMES, uaccel_board.check(STREAM, FRAMES).outputs, sequence=True)
    uaccel_board.check(STREAM, FRAMES, together, sequence=True)
"""
    run(source).assert_outcomes(passed=1)


@pytest.mark.slow
def test_on_several_boards(run: Run, desk: Desk) -> None:
    """As a process, under QEMU and over a serial line, from one test."""
    source = f"""
import numpy as np

def test_gesture(uaccel_board):
    outcome = uaccel_board.check({str(GESTURE)!r})
    (values,) = outcome.outputs.values()
    assert values.shape == (1, 6) and values.dtype == np.int8
    assert 0 < outcome.seconds < 10 and 0 < outcome.stack < 65536
    kind = "serial" if uaccel_board.port else uaccel_board.board.runs[0].kind
    assert (outcome.instructions is None) == (kind != "qemu")
    print("on", uaccel_board, uaccel_board.name)

def test_alone():
    pass
"""
    names = ("host", "mps2_an386", str(desk.board_file))
    options = [word for name in names for word in ("--uaccel-board", name)]
    result = run(source, *options, "--junitxml=report.xml")
    wanted = ["test_gesture[host]", "test_gesture[mps2_an386]", "test_gesture[stand_in]", "test_alone"]
    assert summary(result) == [f"PASSED {name}" for name in wanted]
    result.stdout.fnmatch_lines(["on <board host> host", f"on <board stand_in at {desk.port}> stand_in"])
    cases = ElementTree.parse("report.xml").iter("testcase")
    found = {(case.get("name"), entry.get("name")) for case in cases for entry in case.iter("property")}
    assert ("test_gesture[mps2_an386]", "uaccel_gesture_instructions") in found
    assert ("test_gesture[stand_in]", "uaccel_gesture_seconds") in found


@pytest.mark.slow
def test_inputs_and_expected_values(run: Run, tmp_path: Path) -> None:
    """As arrays, by name, many at a time and as files; the expected ones are TFLite Micro's."""
    data = GESTURE.read_bytes()
    reference = Tflm(data)
    samples = [values[0] for values in random_inputs(data, 5, 6)]
    wanted = [reference.run([sample])[0] for sample in samples]
    np.savez(tmp_path / "all.npz", inputs=np.concatenate(samples), wanted=np.concatenate(wanted))
    source = f"""
import numpy as np
import pytest
from uaccel.errors import InputError

MODEL = {str(GESTURE)!r}
DATA = np.load({str(tmp_path / "all.npz")!r})
INPUTS, WANTED = DATA["inputs"], DATA["wanted"]

def names(board):
    with board.session(MODEL) as device:
        return device.model.inputs[0].name, device.model.outputs[0].name

def test_arrays(uaccel_board):
    got = uaccel_board.check(MODEL, INPUTS, WANTED).outputs
    ((name, values),) = got.items()
    np.testing.assert_array_equal(values, WANTED)
    uaccel_board.check(MODEL, INPUTS[:1], WANTED[:1])
    uaccel_board.check(MODEL, INPUTS[2:4])

def test_names_and_files(uaccel_board, tmp_path):
    first, last = names(uaccel_board)
    uaccel_board.check(MODEL, {{first: INPUTS}}, {{last: WANTED}})
    np.savez(tmp_path / "in.npz", **{{first: INPUTS}})
    np.savez(tmp_path / "out.npz", **{{last: WANTED}})
    uaccel_board.check(MODEL, tmp_path / "in.npz", str(tmp_path / "out.npz"))

def test_what_does_not_fit(uaccel_board):
    with pytest.raises(InputError, match='^inputs: input "[^"]*" is int16, the model wants int8$'):
        uaccel_board.check(MODEL, INPUTS.astype(np.int16))
    with pytest.raises(InputError, match='^expected holds "other"; the model\\'s outputs are "'):
        uaccel_board.check(MODEL, INPUTS, {{"other": WANTED}})
    with pytest.raises(InputError, match="^expected holds 5 samples, inputs 6; give as many of each$"):
        uaccel_board.check(MODEL, INPUTS, WANTED[:5])
"""
    result = run(source)
    result.assert_outcomes(passed=3)


@pytest.mark.slow
def test_a_session_looks_into_the_model(run: Run) -> None:
    source = f"""
def test_layers(uaccel_board):
    with uaccel_board.session({str(GESTURE)!r}, observe=True) as device:
        assert len(device.layers()) == 8
        assert device.time(3).runs == 3
"""
    run(source).assert_outcomes(passed=1)


@pytest.mark.slow
def test_models_are_found_beside_the_test_or_where_pytest_is_started(run: Run, pytester: pytest.Pytester) -> None:
    below = pytester.mkdir("below")
    (below / "near.tflite").symlink_to(GESTURE)
    (pytester.path / "far.tflite").symlink_to(GESTURE)
    (below / "test_below.py").write_text("""
import pytest
from uaccel.errors import ModelError

@pytest.mark.parametrize("model", ["near.tflite", "far.tflite"])
def test_found(uaccel_board, model):
    uaccel_board.check(model)

def test_not_found(uaccel_board):
    wanted = r"^there is no model \\S+/below/none.tflite or \\S+/none.tflite; give its path, or one that comes along: "
    with pytest.raises(ModelError, match=wanted + r"uaccel.models\\(\\)\\['gesture'\\]$"):
        uaccel_board.check("none.tflite")
""")
    run("", below).assert_outcomes(passed=3)


@pytest.mark.slow
def test_a_test_may_say_itself_on_which_boards_it_runs(run: Run) -> None:
    source = """
import pytest

@pytest.mark.parametrize("uaccel_board", ["host", "mps2_an385"], indirect=True)
def test_own(uaccel_board):
    pass

@pytest.mark.parametrize("number, uaccel_board", [(1, "mps2_an386")], indirect=["uaccel_board"])
def test_with_more(number, uaccel_board):
    assert uaccel_board.name == "mps2_an386"
"""
    result = run(source, "--uaccel-board", "mps3_an547")
    names = ["test_own[host]", "test_own[mps2_an385]", "test_with_more[1-mps2_an386]"]
    assert summary(result) == [f"PASSED {name}" for name in names]


def test_other_projects_tests_load_nothing_of_weight(run: Run) -> None:
    source = """
import sys

def test_light():
    assert "uaccel.testing.plugin" in sys.modules
    assert not {"numpy", "tvm", "serial", "uaccel.board", "uaccel.testing.board"} & set(sys.modules)
"""
    run(source).assert_outcomes(passed=1)


# ------------------------------------------------------------------------------------------------ wrong bits


@pytest.mark.slow
def test_a_wrong_bit_is_told_with_its_layer(run: Run) -> None:
    result = run(f"def test_it(uaccel_board):\n    uaccel_board.check({str(RESIDUAL)!r})", conftest=WRONG_BIT)
    result.assert_outcomes(failed=1)
    told = failure(result)
    assert re.fullmatch(
        r"uaccel\.errors\.VerificationError: residual\.tflite on board host is not the exact meaning: sample 0, "
        r'output "tanh_1", element \[0,0,\d,\d\] is -?\d+, expected -?\d+; \d+ of 256 elements differ; '
        r'first wrong: layer 1 "conv_2d_1" \(conv2d on cpu\), element \[0,0,\d,0\] is -?\d+, expected -?\d+; '
        r"\d+ of 2048 elements differ",
        told,
    ), told
    shown = [line for line in result.outlines if re.match(r"\S+\.py:\d+: ", line)]
    assert shown == ["test_it.py:2: VerificationError"], "of uaccel's own code nothing is shown"


@pytest.mark.slow
def test_a_wrong_region_is_cut(run: Run, tmp_path: Path) -> None:
    broken = next(each for each in ZOO if each.accelerator == "npu")
    folder = broken.make(tmp_path)
    source = f"""
from pathlib import Path

def test_it(uaccel_board):
    uaccel_board.check({str(GESTURE)!r}, accelerators=[Path({str(folder)!r})])
"""
    result = run(source)
    result.assert_outcomes(failed=1)
    told = failure(result)
    assert re.search(
        r'first wrong: layer \d+ "conv_2d_\d" \(conv2d on npu\), found by cutting region conv_2d_0_to_\w+, '
        r"element \[[\d,]+\] is -?\d+, expected -?\d+; \d+ of \d+ elements differ",
        told,
    ), told


@pytest.mark.slow
def test_a_wrong_bit_over_a_serial_line(run: Run, desk: Desk) -> None:
    """The stand-in is flashed twice: as it would be delivered, and so that its layers can be read."""
    source = f"def test_it(uaccel_board):\n    uaccel_board.check({str(RESIDUAL)!r})"
    result = run(source, "--uaccel-board", desk.board_file, conftest=WRONG_BIT)
    result.assert_outcomes(failed=1)
    assert "residual.tflite on board stand_in is not the exact meaning" in failure(result)
    assert 'first wrong: layer 1 "conv_2d_1" (conv2d on cpu), element [0,0,' in failure(result)


@pytest.mark.slow
def test_wrong_expectations_are_told_apart_from_wrong_boards(run: Run) -> None:
    source = f"""
import numpy as np

def test_it(uaccel_board):
    uaccel_board.check({str(GESTURE)!r}, expected=np.zeros((1, 6), np.int8))
"""
    result = run(source)
    assert failure(result) == (
        "uaccel.errors.VerificationError: gesture.tflite on board host is not what was expected: sample 0, "
        'output "softmax_1", element [0,0] is -128, expected 0; 6 of 6 elements differ; '
        "every output is the exact meaning of the model: what was expected is not"
    )


# ------------------------------------------------------------------------------------------------ boards that fail


@pytest.mark.slow
def test_an_absent_board_is_skipped_with_the_reason_or_is_a_failure(run: Run, desk: Desk) -> None:
    desk.order("unplug")
    options = ("--uaccel-board", desk.board_file)
    reason = f"board stand_in: there is no port {desk.port}; plug the board in, or name its port with --uaccel-port"
    result = run(ONE_LINE, *options)
    assert summary(result) == [f"SKIPPED {reason}"]
    result = run(ONE_LINE, *options, "--uaccel-strict")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([reason])


def test_an_absent_tool_is_skipped_with_the_command_that_gets_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("cmake", "ninja", "make"):
        for folder in os.environ["PATH"].split(os.pathsep):
            if (Path(folder) / program).exists() and not (tmp_path / program).exists():
                (tmp_path / program).symlink_to(Path(folder) / program)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = run(ONE_LINE, "--uaccel-board", "qemu_riscv32")
    (line,) = summary(result)
    assert line.startswith("SKIPPED riscv64-unknown-elf-gcc (needed for firmware for RISC-V boards): riscv64-")
    assert "; to get it: " in line


@pytest.mark.slow
def test_needs_that_a_board_does_not_meet_are_skipped(run: Run) -> None:
    source = """
import pytest

@pytest.mark.uaccel_needs("fpu", "helium")
def test_two(uaccel_board):
    pass

@pytest.mark.uaccel_needs("memory=32M")
@pytest.mark.uaccel_needs("qemu")
def test_twice(uaccel_board):
    pass
"""
    result = run(source, "--uaccel-board", "mps2_an386", "--strict-markers")
    assert summary(result) == [
        "SKIPPED board mps2_an386 lacks helium: cortex-m4 has no helium",
        "SKIPPED board mps2_an386 lacks memory=32M: its largest RAM has 16,777,216 bytes, wanted 33,554,432",
    ]
    result = run("import pytest\n@pytest.mark.uaccel_needs('gold')\ndef test_it(uaccel_board): pass")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["uaccel_needs: there is no need 'gold' (known: fpu, *"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--uaccel-board", "mps2_an3855"], "no board is called 'mps2_an3855'; did you mean 'mps2_an385'?*"),
        (["--uaccel-port", "/dev/x"], "--uaccel-port /dev/x: none of host has a serial line; see --uaccel-board"),
    ],
)
def test_wrong_options_end_the_run(run: Run, options: list[str], said: str) -> None:
    result = run(ONE_LINE, *options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {said}"])


@pytest.mark.slow
def test_a_busy_board_is_told_with_its_user(run: Run, desk: Desk) -> None:
    options = ("--uaccel-board", desk.board_file, "--uaccel-wait", "0.5")
    with other_process(desk.port) as other:
        result = run(ONE_LINE, *options)
    result.assert_outcomes(errors=1)
    told = rf"the board at {desk.port} is in use by process {other.pid} (the other run) since *, also after 0.5 s; *"
    result.stdout.fnmatch_lines([told])
    run(ONE_LINE, *options).assert_outcomes(passed=1)


@pytest.mark.slow
def test_tests_that_run_at_once_share_a_board(run: Run, desk: Desk) -> None:
    source = f"""
import pytest

@pytest.mark.parametrize("model", [{str(GESTURE)!r}, {str(RESIDUAL)!r}] * 2)
def test_it(uaccel_board, model):
    uaccel_board.check(model)
"""
    run(source, "--uaccel-board", desk.board_file, "-n", "2").assert_outcomes(passed=4)


LOOSE_CABLE = f"""
import time
from pathlib import Path

import numpy as np

from uaccel.runner import execute
from uaccel.session.emulated_board import give_order

SAMPLES = np.zeros((1000, 32, 1, 3), np.int8)
pulled = []

def pull(done, total):
    if done == 20:
        give_order(Path({{desk!r}}), ["{{order}}"])
        pulled.append(time.monotonic())

def test_it(uaccel_board, monkeypatch):
    original = execute.run_batch
    monkeypatch.setattr(execute, "run_batch", lambda *given, **more: original(*given, **dict(more, count=pull)))
    try:
        uaccel_board.check({str(GESTURE)!r}, SAMPLES)
    finally:
        print("noticed after", int(time.monotonic() - pulled[0]), "s")
"""
"""The cable comes out in the middle of a batch, between two of its samples."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("order", "said", "seconds"),
    [
        ("unplug", "vanished: ", 5),
        ("reset", "was reset while the session was going on: start again", 5),
        ("off", '(stopped answering: nothing on |: "run" did not finish within 4 s)', 20),
    ],
)
def test_a_board_that_fails_mid_run_is_told(run: Run, desk: Desk, order: str, said: str, seconds: int) -> None:
    source = LOOSE_CABLE.format(desk=str(desk.folder), order=order)
    begin = time.monotonic()
    result = run(source, "--uaccel-board", desk.board_file, "--uaccel-timeout", "4")
    assert time.monotonic() - begin < 120
    result.assert_outcomes(failed=1)
    assert re.match(rf"uaccel\.\S+Error: {desk.port} ?{said}", failure(result)), failure(result)
    (noticed,) = [int(line.split()[2]) for line in result.outlines if line.startswith("noticed after ")]
    assert noticed <= seconds
