"""The exact meaning of a module, executed by TVM on this machine: what ``--verify`` compares with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.tvm_api import main_bindings, relax, tvm, with_all_bindings

Array = NDArray[Any]


class Executor:
    """A Relax module built for the host; ``main`` takes and returns numpy arrays."""

    def __init__(self, module: Any, *, intermediates: bool = False) -> None:
        self.names: list[str] = []
        if intermediates:
            self.names = [var.name for var, _ in main_bindings(module)[1]]
            module = with_all_bindings(module)
        legal = relax.transform.LegalizeOps()(module)
        self._vm = relax.VirtualMachine(relax.build(legal, target="llvm"), tvm.cpu())

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs; with ``intermediates`` instead every binding's value, in the order of ``names``."""
        result = self._vm["main"](*[tvm.runtime.tensor(np.asarray(value, order="C")) for value in inputs])
        return _arrays(result)


def _arrays(result: Any) -> list[Array]:
    if hasattr(result, "numpy"):
        return [result.numpy()]
    return [array for entry in result for array in _arrays(entry)]
