"""Integer expressions over loop variables: written as C, evaluated here. What is known folds to a plain int."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Union

Value = Union[int, "Term"]

OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.floordiv,  # of what is not negative, where C agrees
    "<": operator.lt,
    "min": min,
    "max": max,
}
PRECEDENCE: Final = {"*": 3, "/": 3, "+": 2, "-": 2, "<": 1, "min": 0, "max": 0}
ATOM: Final = 9


@dataclass(frozen=True)
class Term:
    """``left operation right``, or a variable: then ``operation`` is its name and both sides are 0."""

    operation: str
    left: Value = 0
    right: Value = 0

    def __add__(self, other: Value) -> Value:
        if isinstance(other, int):
            return self._moved(other)
        return Term("+", self, other)

    def __radd__(self, other: int) -> Value:
        return self if other == 0 else Term("+", other, self)

    def __sub__(self, other: Value) -> Value:
        if isinstance(other, int):
            return self._moved(-other)
        return 0 if other == self else Term("-", self, other)

    def __rsub__(self, other: int) -> Value:
        return Term("-", other, self)

    def __mul__(self, other: Value) -> Value:
        if other in (0, 1):
            return self if other == 1 else 0
        if self.operation == "*" and isinstance(self.right, int) and isinstance(other, int):
            return Term("*", self.left, self.right * other)
        return Term("*", self, other)

    __rmul__ = __mul__

    def _moved(self, by: int) -> Value:
        """With a number added, together with one that was added before."""
        base: Value = self
        if self.operation in ("+", "-") and isinstance(self.right, int):
            base, by = self.left, by + (self.right if self.operation == "+" else -self.right)
        return base if by == 0 else Term("+" if by > 0 else "-", base, abs(by))

    @property
    def is_variable(self) -> bool:
        return self.operation not in OPERATIONS

    @property
    def precedence(self) -> int:
        return PRECEDENCE.get(self.operation, ATOM)

    def __str__(self) -> str:
        if self.is_variable:
            return self.operation
        if self.operation in ("min", "max"):
            left, right = within(self.left, PRECEDENCE["+"]), within(self.right, PRECEDENCE["+"])
            return f"{left} {'<' if self.operation == 'min' else '>'} {right} ? {left} : {right}"
        right = within(self.right, self.precedence + (self.operation != "+"))
        return f"{within(self.left, self.precedence)} {self.operation} {right}"


def within(value: Value, precedence: int) -> str:
    """In brackets where it binds less."""
    text = str(value)
    binds = value.precedence if isinstance(value, Term) else ATOM if value >= 0 else PRECEDENCE["-"]
    return text if binds >= precedence else f"({text})"


def _made(operation: str, left: Value, right: Value) -> Value:
    if isinstance(left, int) and isinstance(right, int):
        return int(OPERATIONS[operation](left, right))
    return Term(operation, left, right)


def smaller(left: Value, right: Value) -> Value:
    return _made("min", left, right)


def larger(left: Value, right: Value) -> Value:
    return _made("max", left, right)


def divided(left: Value, right: Value) -> Value:
    return left if right == 1 else _made("/", left, right)


def less(left: Value, right: Value) -> Value:
    """1 or 0."""
    return _made("<", left, right)


def units(value: Value, unit: int) -> Value:
    """How many of ``unit`` it takes to hold so many."""
    return divided(value + unit - 1, unit)


def evaluate(value: Value, variables: Mapping[str, int]) -> int:
    if isinstance(value, int):
        return value
    if value.is_variable:
        return variables[value.operation]
    made = OPERATIONS[value.operation](evaluate(value.left, variables), evaluate(value.right, variables))
    return int(made)
