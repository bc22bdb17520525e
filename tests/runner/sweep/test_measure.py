"""One function for one run: plain data in, the command's JSON out."""

from __future__ import annotations

import json

import pytest

import uaccel
from support.models.networks import OWN
from support.run.command import is_exact, process
from uaccel.errors import BoardError, InputError, ModelError

GESTURE = OWN / "gesture.tflite"


@pytest.mark.slow
def test_it_gives_what_the_command_writes() -> None:
    report = uaccel.measure(GESTURE, "host", ["matrix8"], samples=9, favour="size")
    assert is_exact(report, samples=9)
    words = ("run", GESTURE, "-b", "host", "-a", "matrix8", "--verify", "--samples", "9", "--favour", "size", "--json")
    told = process(*words).report
    for one in (report, told):
        for layer in one["layers"]:
            layer.pop("seconds")
    assert json.loads(json.dumps(report)) == told


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"favor": "size"}, InputError, r"^unknown key 'favor'; did you mean 'favour'\?; known: name, "),
        ({"samples": "many"}, InputError, r"^samples is 'many'; wanted a number$"),
        ({"board": "none"}, BoardError, "none"),
        ({"model": "none.tflite"}, ModelError, "no model file none.tflite"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        uaccel.measure(**({"model": GESTURE} | given))  # type: ignore[arg-type]
