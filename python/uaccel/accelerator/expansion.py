"""What the accelerator computes of a match, and what the CPU does before and after: written down in Relax.

An operation's ``expand(expansion, region, inputs)`` gets the region's inputs as Relax variables and returns the
result. ``expansion.cpu(expr, "pad")`` binds an expression that the CPU computes; ``expansion.engine(body, inputs,
"sums")`` one that the accelerator does, where ``body`` makes the expression from the variables of its own function.
All of it stays Relax: TVM executes the parts on this computer, so that their meaning is compared with the match's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from uaccel.tvm_api import relax


@dataclass(frozen=True)
class Expansion:
    """The open main function, seen from one match. ``name`` is the layer's."""

    name: str
    bind: Callable[[Any, str], Any]
    call_engine: Callable[[str, list[Any], Callable[[list[Any]], Any]], Any]

    def cpu(self, expr: Any, part: str) -> Any:
        """The variable of a part that the CPU computes; ``part`` becomes part of its name."""
        return self.bind(expr, f"{self.name}_{part}")

    def engine(self, body: Callable[..., Any], inputs: Sequence[Any], part: str) -> Any:
        """The variable of what the accelerator computes: one expression over ``inputs``."""
        return self.call_engine(f"{self.name}_{part}", list(inputs), lambda variables: body(*variables))


def permuted(expansion: Expansion, value: Any, axes: Sequence[int], part: str) -> Any:
    """A layout change on the CPU; those that meet their opposites vanish later."""
    return expansion.cpu(relax.op.permute_dims(value, list(axes)), part)
