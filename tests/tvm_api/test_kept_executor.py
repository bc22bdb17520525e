"""A process builds what a model means once, however many boards it runs on; another model is never taken for it."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

from uaccel.tvm_api import ModuleBuilder, executor, relax
from uaccel.tvm_api.executor import Executor

X = np.arange(4, dtype=np.int32)


def adds(number: int, last: int) -> Any:
    """A constant of ``number``, the last element of which is ``last``."""
    builder = ModuleBuilder()
    constant = relax.const(np.array([number] * 3 + [last], np.int32))
    parameter = relax.Var("x", relax.TensorType((4,), "int32"))
    with builder.function([parameter]) as block:
        block.finish(block.emit(relax.op.add(parameter, constant), "sum"))
    return builder.module


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The modules that are really built."""
    modules: list[Any] = []
    machine = executor._machine

    def counted(module: Any, intermediates: bool) -> Any:
        modules.append(module)
        return machine(module, intermediates)

    monkeypatch.setattr(executor, "_machine", counted)
    monkeypatch.setattr(executor, "_kept", OrderedDict())
    return modules


def test_an_equal_module_is_built_once(built: list[Any]) -> None:
    for _ in range(3):
        np.testing.assert_array_equal(Executor(adds(5, 7), keep=True).run([X])[0], X + np.array([5, 5, 5, 7]))
    assert len(built) == 1


def test_another_constant_is_another_module(built: list[Any]) -> None:
    for last in (7, 8, 7):
        np.testing.assert_array_equal(Executor(adds(5, last), keep=True).run([X])[0], X + np.array([5, 5, 5, last]))
    assert len(built) == 2


def test_equal_hashes_are_not_trusted(built: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "structural_hash", lambda module: 0)
    for last in (7, 8):
        np.testing.assert_array_equal(Executor(adds(5, last), keep=True).run([X])[0], X + np.array([5, 5, 5, last]))


def test_few_are_kept(built: list[Any]) -> None:
    for last in range(executor.KEPT + 2):
        Executor(adds(5, last), keep=True)
    assert len(executor._kept) == executor.KEPT
