"""Memory plans that have passed the independent check."""

from __future__ import annotations

from collections.abc import Sequence

from uaccel.memory import Block, Plan, check, plan


def planned(blocks: Sequence[Block], effort: float = 1.0) -> Plan:
    """The planner's, checked."""
    result = plan(blocks, effort=effort)
    check(blocks, result)
    return result
