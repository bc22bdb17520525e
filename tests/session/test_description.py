"""What a device says of its model is not believed blindly: it may be any firmware, and any age."""

from __future__ import annotations

import json
from typing import Any

import pytest

from uaccel.errors import DeviceError
from uaccel.session.description import read_description
from uaccel.session.protocol_ids import VERSION, HelloReply

TENSOR = {"name": "x", "shape": [1, 4], "dtype": "int8"}
LAYER = {"name": "l", "op": "add", "engine": "cpu", "outputs": [{"shape": [4], "dtype": "int8"}]}


def described(**change: Any) -> str:
    hello = HelloReply(VERSION, 0, 512, 4096, 1, 1, 1, 4, 4, 2, 0, bytes(32), bytes(8), b"x")
    whole = {"model": "m", "inputs": [TENSOR], "outputs": [TENSOR], "layers": [LAYER]} | change
    try:
        return read_description(hello, json.dumps(whole).encode(), "the board").name
    except DeviceError as error:
        return str(error)


def test_a_sound_one() -> None:
    assert described() == "m"
    assert described(later="keys are overlooked") == "m"


@pytest.mark.parametrize(
    "change",
    [
        {"inputs": None},
        {"inputs": [{"name": "x"}]},
        {"inputs": [TENSOR | {"dtype": "float7"}]},
        {"state": [TENSOR | {"offset": -1}]},
        {"state": [TENSOR]},
        {"inputs": [TENSOR | {"dtype": "object"}]},
        {"inputs": [TENSOR | {"dtype": None}]},
        {"inputs": [TENSOR | {"shape": ["a"]}]},
        {"inputs": [TENSOR | {"shape": [-4, -1]}]},
        {"inputs": [TENSOR | {"shape": [4.0]}]},
        {"inputs": [TENSOR | {"shape": 4}]},
        {"inputs": [TENSOR | {"name": 7}]},
        {"inputs": [TENSOR | {"shape": [1 << 80]}]},
        {"layers": [LAYER | {"outputs": [{"shape": [1]}]}]},
        {"layers": [7]},
    ],
    ids=str,
)
def test_what_makes_no_sense(change: dict[str, Any]) -> None:
    assert described(**change).startswith("the board describes its model in a way that this uaccel cannot read: ")


@pytest.mark.parametrize("change", [{"inputs": []}, {"outputs": [TENSOR, TENSOR]}, {"layers": []}], ids=str)
def test_what_does_not_fit_the_greeting(change: dict[str, Any]) -> None:
    assert described(**change) == "the board describes a model that is not the one it has: build its firmware anew"
