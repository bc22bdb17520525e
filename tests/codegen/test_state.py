"""What lasts between inferences, as an application in C meets it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from support.device.generated import Unpacked, archive, compiled, run
from support.models.networks import OWN
from support.oracle.oracle import Tflm, random_inputs
from support.oracle.sanitized import SANITIZE

HERE = Path(__file__).parent
STREAM = OWN / "stream.tflite"
FRAMES = 6


@pytest.mark.parametrize("flags", [("-O2",), ("-O1", *SANITIZE)], ids=["", "sanitized"])
def test_two_models_keep_their_states_apart(flags: tuple[str, ...], tmp_path: Path) -> None:
    data = STREAM.read_bytes()
    frames = random_inputs(data, 8, FRAMES)
    program = Unpacked(tmp_path, archive(STREAM), archive(STREAM, name="twin")).program(HERE / "app_state.c", *flags)
    stream, twin = Tflm(data), Tflm(data)
    wanted = b""
    for i, frame in enumerate(frames):
        wanted += stream.run(frame)[1].tobytes()
        wanted += twin.run(frames[i // 2])[1].tobytes() if i % 2 == 0 else b""
    assert run(program, b"".join(frame[0].tobytes() for frame in frames)) == 2 * wanted


def test_the_archive_tells_of_the_state() -> None:
    made = compiled(STREAM)
    assert made.placement.state == 228
    header = made.generated.public_headers["tvmgen_stream.h"]
    assert '"first_state": int16 [1,96], scale 0.000122070312, zero point 0' in header
    assert '"second_state": int8 [1,32], scale 0.03125, zero point 0' in header
    assert "void tvmgen_stream_reset(void);" in header


def test_models_that_remember_nothing_say_nothing_of_it() -> None:
    made = compiled(OWN / "gesture.tflite")
    texts = [*made.generated.sources.values(), *made.generated.public_headers.values()]
    assert all(word not in text for text in texts for word in ("state", "STATE", "reset"))
    assert ".reset" not in "".join(made.generated.description.values())


def test_the_state_can_be_placed(tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(STREAM))
    marked = '-DUACCEL_STATE=__attribute__((section(".kept")))'
    assert b".kept" in b"".join(path.read_bytes() for path in tree.objects("-O1", marked))


def test_a_first_value_of_many_bytes_is_a_constant() -> None:
    from support.device.hostlib import compile_bytes
    from support.models.stateful import Ring

    made = compile_bytes(Ring(first=np.arange(18).reshape(1, 6, 3)).build())
    assert "memcpy(STATE(0), tvmgen_model_first_rows, 18);" in made.generated.sources["tvmgen_model.c"]
