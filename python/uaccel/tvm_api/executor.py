"""The exact meaning of a module, executed by TVM on this machine: what ``--verify`` compares with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.model import StateSpec
from uaccel.tvm_api import main_bindings, relax, tvm, with_all_bindings

Array = NDArray[Any]


class Executor:
    """A Relax module built for the host; ``main`` takes and returns numpy arrays.

    Of a model with ``state`` it keeps that from run to run; ``reset`` goes back to the beginning.
    """

    def __init__(self, module: Any, *, state: Sequence[StateSpec] = (), intermediates: bool = False) -> None:
        self.names: list[str] = []
        self._initial = [entry.initial for entry in state]
        self._updates = bool(state) and not intermediates
        if intermediates:
            self.names = [var.name for var, _ in main_bindings(module)[1]]
            module = with_all_bindings(module)
        legal = relax.transform.LegalizeOps()(module)
        self._vm = relax.VirtualMachine(relax.build(legal, target="llvm"), tvm.cpu())
        self.reset()

    def reset(self) -> None:
        """The state is as before the first run."""
        self._state = list(self._initial)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs; with ``intermediates`` instead every binding's value, in the order of ``names``: the state then
        stays as it was."""
        given = [tvm.runtime.tensor(np.asarray(value, order="C")) for value in (*inputs, *self._state)]
        results = _arrays(self._vm["main"](*given))
        if self._updates:
            outputs = len(results) - len(self._state)
            results, self._state = results[:outputs], results[outputs:]
        return results


def _arrays(result: Any) -> list[Array]:
    if hasattr(result, "numpy"):
        return [result.numpy()]
    return [array for entry in result for array in _arrays(entry)]
