"""Every builtin operator and type that the tflite-micro wheel runs: the same bytes, floats but for rounding."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.reference_rows import makers, rows
from support.oracle.oracle import Array, Tflm, random_inputs
from uaccel.errors import ModelError

OTHERWISE = {
    "DIV, int8": "the reference shifts by more than 31 bits, which C leaves undefined",
    "GREATER, int16": "the reference never sets the scales, and its answer is always false",
    "CAST to uint32, float32": "C leaves the cast of a negative float to an unsigned type undefined",
}
"""What may differ, and why."""
NO_BOOLS = ("LOGICAL_AND", "LOGICAL_OR")
"""The reference takes the first bytes of any tensor for bools."""
GROUP = 40


def runs(data: bytes, inputs: list[list[Array]]) -> list[list[Array]] | None:
    """What the reference makes of a model; None where it has no kernel."""
    try:
        reference = Tflm(data)
        return [reference.run(values) for values in inputs]
    except RuntimeError:
        return None


def groups() -> Iterator[list[str]]:
    names = [name for name, _ in rows()]
    yield from (names[i : i + GROUP] for i in range(0, len(names), GROUP))


def equal(got: Array, wanted: Array) -> bool:
    if got.dtype.kind != "f":
        return bool(np.array_equal(got, wanted))
    with warnings.catch_warnings(action="ignore"):
        return bool(np.allclose(got, wanted, rtol=1e-5, atol=1e-5, equal_nan=True))


def differing(names: list[str]) -> tuple[list[str], list[str], int]:
    """Of these rows those with other results, those that are refused, and how many the reference runs."""
    table, wrong, refused, known = dict(rows()), [], [], {}
    for name in names:
        data = many({name: table[name]})
        inputs = random_inputs(data, 0, 8)
        wanted = runs(data, inputs)
        if wanted is not None:
            known[name] = (inputs, wanted)
    taken = {name: table[name] for name in known if name.partition(",")[0] not in NO_BOOLS or name.endswith("bool")}
    refused = [name for name in known if name not in taken]
    model = HostModel(compile_bytes(many(taken)))
    for run in range(8):
        results = iter(model(*(value for name in taken for value in known[name][0][run])))
        for name in taken:
            same = [equal(next(results), wanted) for wanted in known[name][1][run]]
            if not all(same) and name not in wrong:
                wrong.append(name)
    return wrong, refused, len(known)


@pytest.mark.slow
@pytest.mark.parametrize("names", list(groups()), ids=lambda names: names[0])
def test_as_the_reference(names: list[str]) -> None:
    wrong, refused, _ = differing(names)
    assert [name for name in wrong if name not in OTHERWISE] == []
    for name in refused:
        with pytest.raises(ModelError, match=r"is \w+, supported is bool$"):
            compile_bytes(many({name: dict(rows())[name]}))


@pytest.mark.sample(2)
@pytest.mark.parametrize("operator", ["ABS", "RSQRT", "SELECT_V2", "DYNAMIC_UPDATE_SLICE", "CUMSUM", "FULLY_CONNECTED"])
def test_some_as_the_reference(operator: str) -> None:
    names = [name for name, _ in rows() if name.partition(",")[0] == operator]
    wrong, _, count = differing(names)
    assert wrong == []
    assert count >= 2


def test_the_table_has_an_operator_but_once() -> None:
    made: dict[str, Row] = {name: make("int8") for name, make in makers().items()}
    assert all(name.startswith(row.operator) for name, row in made.items())
