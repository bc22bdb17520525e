"""Defines every error that uaccel raises on purpose, and whose fault it is.

The class says who has to act, and so which exit status the command line returns (see ``docs/cli.md``).
A message is one line: what was seen, where, what was wanted, what to do next.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_UNPRINTABLE: Final = re.compile(r"[^ -~]")


def escape_terminal(text: str) -> str:
    """Text for a terminal: characters that it would obey rather than print are escaped, and so are ends of lines."""
    return _UNPRINTABLE.sub(lambda match: match[0] if match[0].isprintable() else repr(match[0])[1:-1], text)


def one_line(text: str) -> str:
    """A message on one line of a terminal, however many it came in."""
    return escape_terminal(" ".join(text.splitlines()))


class UaccelError(Exception):
    """Says that the user's input or environment is at fault; the message tells what to do."""

    exit_status = 1

    def __str__(self) -> str:
        return one_line(super().__str__())


class ModelError(UaccelError):
    """Is raised for a model file that cannot be read or cannot be compiled."""


class BoardError(UaccelError):
    """Is raised for a board file that is wrong, or a board that does not exist."""


class AcceleratorError(UaccelError):
    """Is raised for a wrong description of an accelerator, for an unknown one, or for a claim that cannot hold."""


class InputError(UaccelError):
    """Is raised for input tensors that do not fit the model."""


class ToolError(UaccelError):
    """Is raised for a compiler or another program that is missing or failed."""


class VerificationError(UaccelError):
    """Is raised when outputs differ from the exact meaning of the model."""

    exit_status = 3


class DeviceError(UaccelError):
    """Is raised when the device or the transport to it failed."""

    exit_status = 4


class LayerError(DeviceError):
    """Is raised when an accelerator failed in a layer: its driver returned ``code`` and said ``text``."""

    def __init__(self, message: str, layer: int, code: int, text: str) -> None:
        super().__init__(message)
        self.layer = layer
        self.code = code
        self.text = text


class InternalError(UaccelError):
    """Is raised for a bug in uaccel: a state that the code promised could not occur."""

    exit_status = 70


def need(condition: object, problem: str, kind: Callable[[str], Exception] = ModelError) -> None:
    """Refuse something, by default a part of a model, with a reason in words; whoever walks it adds which part."""
    if not condition:
        raise kind(problem)
