"""What has to hold for the gesture classifier on every board that pytest is told of."""

import numpy as np
import pytest

import uaccel
from uaccel.testing import BoardUnderTest

MODEL = uaccel.models()["gesture"]  # your own: Path(__file__).parents[1] / "models" / "gesture.tflite"
RECORDINGS = MODEL.with_name("gesture_samples.npz")
LABELS = MODEL.with_name("gesture_labels.txt").read_text(encoding="utf-8").split()


def test_every_recording_is_recognised(uaccel_board: BoardUnderTest) -> None:
    """`check` compares every byte with what the model means; the labels are ours."""
    outcome = uaccel_board.check(MODEL, inputs=RECORDINGS)
    found = np.argmax(outcome.outputs["softmax_1"].reshape(len(LABELS), -1), axis=1)
    assert [LABELS[number] for number in found] == LABELS


def test_it_fits_and_is_fast(uaccel_board: BoardUnderTest) -> None:
    outcome = uaccel_board.check(MODEL)
    assert outcome.stack < 2048
    assert outcome.instructions is None or outcome.instructions < 40_000


@pytest.mark.uaccel_needs("memory=64K", "dsp")
def test_on_a_board_with_dsp_instructions(uaccel_board: BoardUnderTest) -> None:
    """Skipped where there are none, and the reason is told. Elsewhere: sixteen inputs, extremes and random ones."""
    uaccel_board.check(MODEL, samples=16, seed=1)
