"""Expressions mean in C what they mean here, brackets and all, and what is known folds away."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

from support.device.c_function import compiled
from uaccel.accelerator.tensor.schedule import Term, Value, divided, evaluate, larger, less, smaller, units

A, B = Term("a"), Term("b")


def random_expression(choose: random.Random, depth: int) -> Value:
    """Over a and b, which are positive; never a division of what may be negative."""
    if depth == 0:
        leaves: list[Value] = [A, B, choose.randint(0, 9)]
        return choose.choice(leaves)
    left, right = random_expression(choose, depth - 1), random_expression(choose, depth - 1)
    made: list[Callable[[], Value]] = [
        lambda: left + right,
        lambda: left - right,
        lambda: left * right,
        lambda: smaller(left, right),
        lambda: larger(left, right),
        lambda: divided(larger(left, 0), choose.randint(1, 5)),
        lambda: units(larger(right, 0), choose.randint(1, 5)),
        lambda: less(left, right),
    ]
    return choose.choice(made)()


def test_c_and_python_agree(tmp_path: Path) -> None:
    choose = random.Random(5)
    expressions = [random_expression(choose, 1 + number % 4) for number in range(400)]
    lines = [f'    printf("%d\\n", (int)({expression}));' for expression in expressions]
    source = "#include <stdio.h>\nint main(void)\n{\n    const int a = 7, b = 3;\n    (void)a;\n    (void)b;\n"
    program = compiled(tmp_path, source + "\n".join(lines) + "\n    return 0;\n}\n", "gcc", "-w")
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    assert [int(word) for word in printed] == [evaluate(value, {"a": 7, "b": 3}) for value in expressions]


def test_what_is_known_folds() -> None:
    assert str(A * 4 * 8) == "a * 32"
    assert str(A - 1 + 3) == "a + 2"
    assert str(A + 1 - 3) == "a - 2"
    assert A + 0 is A
    assert A * 1 is A
    assert A * 0 == 0
    assert A - A == 0
    assert divided(A, 1) is A
    assert units(9, 8) == 2


def test_brackets_stand_where_c_needs_them() -> None:
    assert str(A * divided(B, 2)) == "a * (b / 2)"
    assert str(divided(A, 2) * B) == "a / 2 * b"
    assert str(A - (B - 1)) == "a - (b - 1)"
    assert str((A + B) * 2) == "(a + b) * 2"
    assert str(larger(A, 0) + 1) == "(a > 0 ? a : 0) + 1"
    assert str(smaller(A + 1, B)) == "a + 1 < b ? a + 1 : b"
