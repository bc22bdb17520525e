"""States in memory of the caller's: streams of one model side by side, saved and restored, and what is no state."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen.levels import ON_A_BOARD, SEND, sent
from support.device.boards import board_with_tools, build_bare
from support.device.generated import Unpacked, archive, cc, compiled, run
from support.models.networks import OWN
from support.oracle.oracle import Array, Tflm, random_inputs
from support.oracle.sanitized import SANITIZE
from uaccel.codegen.options import EmitOptions
from uaccel.codegen.state import state_id
from uaccel.lower.placement import Placement, place_apart
from uaccel.pipeline import Compiled, compile_model

HERE = Path(__file__).parent
STREAM = OWN / "stream.tflite"
FRAMES = 6
NONE = bytes(4)
"""The scores of a run that was refused."""
NULL_POINTER, OTHER_STATE = b"\xff", b"\xfc"


def wanted(frames: list[list[Array]]) -> Iterator[bytes]:
    """What the application sends, by interpreters that each hear one stream alone."""
    data = STREAM.read_bytes()

    def scores(interpreter: Tflm, frame: int) -> bytes:
        return b"\0" + interpreter.run(frames[frame])[1].tobytes()

    first, second, own = Tflm(data), Tflm(data), Tflm(data)
    yield OTHER_STATE + NONE
    yield NULL_POINTER + NONE
    for i in range(FRAMES):
        yield scores(first, i)
        yield scores(second, FRAMES - 1 - i)
        yield scores(own, 0)
        if i == 2:
            yield scores(Tflm(data), i)
    yield scores(own, 0)
    yield scores(Tflm(data), 0)
    again = Tflm(data)
    for i in range(3):
        again.run(frames[i])
    yield scores(again, 3)
    yield OTHER_STATE + NONE


def beside(folder: Path) -> tuple[Unpacked, bytes]:
    """The files that it is built of, besides itself, and what it must send."""
    other = folder / "other.tflite"
    other.write_bytes(STREAM.read_bytes() + bytes(16))  # another file, and so another model
    tree = Unpacked(folder, archive(STREAM), archive(other))
    frames = random_inputs(STREAM.read_bytes(), 11, FRAMES)
    text = ",\n".join("{" + ",".join(map(str, frame[0].ravel().tolist())) + "}" for frame in frames)
    (folder / "frames.h").write_text(
        f"enum {{ FRAMES = {FRAMES} }};\nstatic const int8_t frames[][16] = {{\n{text}}};\n"
    )
    (folder / "send.h").write_text(SEND)
    return tree, b"".join(wanted(frames))


@pytest.mark.parametrize("flags", [("-O2",), ("-O1", *SANITIZE)], ids=["", "sanitized"])
def test_streams_on_this_computer(flags: tuple[str, ...], tmp_path: Path) -> None:
    tree, expected = beside(tmp_path)
    program, include = tmp_path / "program", [tree.include, tmp_path]
    cc(HERE / "app_streams.c", *tree.sources, *flags, "-lm", include=include, output=program)
    assert run(program) == expected


@pytest.mark.parametrize("name", ["mps3_an547"])
def test_streams_on_a_board(name: str, tmp_path: Path) -> None:
    board = board_with_tools(name)
    tree, expected = beside(tmp_path)
    sources = [HERE / "app_streams.c", *tree.sources]
    elf = build_bare(board, sources, tmp_path / "bare", ON_A_BOARD, f"-I{tree.include}", f"-I{tmp_path}")
    assert sent(board, elf, len(expected), name) == expected


def test_the_linker_drops_the_state_that_nobody_uses(tmp_path: Path) -> None:
    """As firmware is linked: each function and each array may be left out."""
    tree = Unpacked(tmp_path, archive(STREAM))
    (tmp_path / "app.c").write_text(
        '#include "tvmgen_stream.h"\n'
        "static uint32_t mine[TVMGEN_STREAM_STATE_SIZE / 4];\n"
        "int main(void)\n{\n    tvmgen_stream_init(mine);\n"
        "    return tvmgen_stream_run_with(mine, 0, 0) != TVMGEN_STREAM_NULL_POINTER;\n}\n"
    )
    flags = ("-Os", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-lm")
    cc(tmp_path / "app.c", *tree.sources, *flags, include=[tree.include], output=tmp_path / "app")
    names = subprocess.run(["nm", tmp_path / "app"], capture_output=True, text=True, check=True).stdout
    assert "mine" in names
    assert "own_state" not in names


def test_a_saved_state_is_bound_to_the_model_file_and_to_where_its_tensors_lie(tmp_path: Path) -> None:
    """Not to the board, the interface or the kernels."""

    def mark(made: Compiled, placement: Placement | None = None) -> int:
        return state_id(made.program, placement or made.placement)

    here = mark(compiled(STREAM))
    other = tmp_path / "other.tflite"
    other.write_bytes(STREAM.read_bytes() + bytes(16))
    assert mark(compile_model(STREAM, board="mps3_an547", options=EmitOptions(workspace_io=True))) == here
    assert mark(compiled(other)) != here
    assert mark(compiled(STREAM), place_apart(compiled(STREAM).program)) != here


def test_one_model_at_the_same_time_in_two_threads(tmp_path: Path) -> None:
    """With a state and a workspace for each."""
    made = compiled(STREAM, workspace_pool="pool")
    header = made.generated.public_headers["tvmgen_stream.h"]
    assert "int32_t tvmgen_stream_run_with(void *state, struct tvmgen_stream_inputs *inputs," in header
    tree = Unpacked(tmp_path, archive(STREAM, workspace_pool="pool"))
    program = tmp_path / "threads"
    flags = ("-O2", "-pthread", "-fsanitize=thread")
    cc(HERE / "app_streams_at_once.c", *tree.sources, *flags, "-lm", include=[tree.include], output=program)
    run(program)
