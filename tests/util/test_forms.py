"""Forms of documents that anybody may have written: what each takes, to the last number, and what it says."""

from __future__ import annotations

from typing import Any

import pytest

from uaccel.util.form import (
    FLAG,
    INDEX,
    LARGEST,
    LONGEST_SHOWN,
    MOST_DIMENSIONS,
    NUMBER,
    OBJECT,
    SHAPE,
    TEXT,
    WHOLE,
    Form,
    Maybe,
    Named,
    Rows,
    complaint,
    digits,
    optional,
)

PAIR: Form = {"a": WHOLE, "b?": TEXT}
LOOSE: Form = optional(a=WHOLE)
TAKEN: list[tuple[Form, list[Any]]] = [
    (TEXT, ["", "x"]),
    (FLAG, [True, False]),
    (INDEX, [0, -1, LARGEST, -LARGEST]),
    (WHOLE, [0, 1, LARGEST]),
    (NUMBER, [0, 0.0, 0.5, 10**20]),
    (SHAPE, [[], [0], [LARGEST, 1], [1] * MOST_DIMENSIONS]),
    (OBJECT, [{}, {"any": 5}]),
    (digits(3), ["0af", "999"]),
    ([WHOLE], [[], [1, 2]]),
    (Rows(WHOLE, least=2), [[1, 2], [1, 2, 3]]),
    (Maybe(WHOLE), [None, 3]),
    (Named(WHOLE), [{}, {"any thing": 1}]),
    (Named(WHOLE, in_c=True), [{"_a1": 1}, {"B": 0}]),
    (PAIR, [{"a": 1, "b": "x"}, {"a": 1}, {"a": 1, "more": None}]),
    (LOOSE, [{}, {"a": 1}, {"b": 2}]),
]
REFUSED: list[tuple[Form, Any, str]] = [
    (TEXT, 5, "it is 5, wanted text"),
    (FLAG, 1, "it is 1, wanted true or false"),
    (INDEX, True, "it is True, wanted a whole number"),
    (INDEX, LARGEST + 1, f"it is {LARGEST + 1}, wanted a whole number"),
    (INDEX, -LARGEST - 1, f"it is {-LARGEST - 1}, wanted a whole number"),
    (WHOLE, -1, "it is -1, wanted a whole number from 0 to 1099511627776"),
    (WHOLE, LARGEST + 1, "it is 1099511627777, wanted a whole number from 0 to 1099511627776"),
    (WHOLE, 1.0, "it is 1.0, wanted a whole number from 0 to 1099511627776"),
    (NUMBER, -1, "it is -1, wanted a number from 0"),
    (NUMBER, True, "it is True, wanted a number from 0"),
    (NUMBER, float("nan"), "it is nan, wanted a number from 0"),
    (SHAPE, [-1], "it is [-1], wanted at most 32 whole numbers from 0 to 1099511627776"),
    (SHAPE, [1, True], "it is [1, True], wanted at most 32 whole numbers from 0 to 1099511627776"),
    (SHAPE, [LARGEST + 1], "it is [1099511627777], wanted at most 32 whole numbers from 0 to 1099511627776"),
    (SHAPE, {}, "it is {}, wanted at most 32 whole numbers from 0 to 1099511627776"),
    (SHAPE, [1] * 33, f"it is {'[' + '1, ' * 19 + '1,'}..., wanted at most 32 whole numbers from 0 to 1099511627776"),
    (OBJECT, [], "it is [], wanted an object"),
    (digits(3), "0ag", "it is '0ag', wanted 3 hexadecimal digits"),
    (digits(3), "0a", "it is '0a', wanted 3 hexadecimal digits"),
    (digits(3), "0aff", "it is '0aff', wanted 3 hexadecimal digits"),
    (digits(3), 123, "it is 123, wanted 3 hexadecimal digits"),
    ([WHOLE], {}, "it is {}, wanted a list"),
    ([WHOLE], [0, -1], "[1] is -1, wanted a whole number from 0 to 1099511627776"),
    (Rows(WHOLE, least=2), [1], "it is [1], wanted a list of 2 or more"),
    (Maybe(WHOLE), "", "it is '', wanted a whole number from 0 to 1099511627776"),
    (Named(WHOLE), [], "it is [], wanted an object"),
    (Named(WHOLE), {"k": "v"}, "['k'] is 'v', wanted a whole number from 0 to 1099511627776"),
    ({"x": Named(WHOLE, in_c=True)}, {"x": {"1a": 1}}, "x names '1a', wanted letters, digits and underscores"),
    (PAIR, {"b": "x"}, "a is missing"),
    ({"x": [PAIR]}, {"x": [{}]}, "x[0].a is missing"),
    (PAIR, {"a": 1, "b": 2}, "b is 2, wanted text"),
    (LOOSE, {"a": ""}, "a is '', wanted a whole number from 0 to 1099511627776"),
    (TEXT, ["x" * (LONGEST_SHOWN - 4)], f"it is ['{'x' * (LONGEST_SHOWN - 4)}'], wanted text"),
    (TEXT, ["x" * (LONGEST_SHOWN - 3)], f"it is ['{'x' * (LONGEST_SHOWN - 3)}'..., wanted text"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "values"), TAKEN, ids=range(len(TAKEN)))
def test_what_is_taken(form: Form, values: list[Any]) -> None:
    assert [complaint(value, form) for value in values] == [""] * len(values)


@pytest.mark.parametrize(("form", "value", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused(form: Form, value: Any, words: str) -> None:
    assert complaint(value, form) == words


def test_the_limits_themselves() -> None:
    assert (LARGEST, MOST_DIMENSIONS, LONGEST_SHOWN) == (1 << 40, 32, 60)
