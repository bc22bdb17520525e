"""C as text: where lines and strings break, and what literals say."""

from __future__ import annotations

import numpy as np
import pytest

from uaccel.util.c_text import WIDTH, array_body, filled, float_literal, int_literal, string_literals


def test_strings_break_behind_commas() -> None:
    assert string_literals('{"a":1,"bc":22}', 10) == ['"{\\"a\\":1,"', '"\\"bc\\":22}"']


def test_strings_without_commas_break_between_characters() -> None:
    assert string_literals('abc"def', 4) == ['"abc"', '"\\"de"', '"f"']
    assert string_literals("", 4) == ['""']


def test_lines_break_outside_of_indices() -> None:
    head, index = "    " + "a" * 84 + " =", "in[i * 30 + j * 5 + 6]"
    assert filled(f"{head} {index} * 2;") == f"{head}\n            {index} * 2;"
    assert all(len(line) <= WIDTH for line in filled(f"x = in[{' + '.join(['variable'] * 30)}];").splitlines())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-(2**31), "INT32_MIN"),
        (2**31, "INT64_C(2147483648)"),
        (-(2**40), "-INT64_C(1099511627776)"),
        (-(2**63), "INT64_MIN"),
        (2**63, "UINT64_C(9223372036854775808)"),
    ],
)
def test_integers(value: int, text: str) -> None:
    assert int_literal(value) == text


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, "float32", "0.1f"),
        (-0.0, "float64", "-0.0"),
        (1e20, "float32", "1e+20f"),
        (float("inf"), "float64", "(double)INFINITY"),
        (float("-inf"), "float32", "-INFINITY"),
        (float("nan"), "float32", "NAN"),
    ],
)
def test_floats(value: float, dtype: str, text: str) -> None:
    assert float_literal(value, dtype) == text


def test_bools_in_memory_are_bytes() -> None:
    assert array_body(np.array([True, False])) == "    1, 0"
