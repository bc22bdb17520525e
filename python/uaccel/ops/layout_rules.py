"""All rules together; whoever looks for a kernel asks here, so that no rule is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uaccel.model import TensorInfo
from uaccel.ops import layout_gather, layout_join, layout_pad, layout_repeat, layout_select
from uaccel.ops.base import Operand
from uaccel.ops.kernel import Kernel
from uaccel.ops.layout import RULES

RULE_MODULES = (layout_gather, layout_join, layout_pad, layout_repeat, layout_select)


def layout_kernels(call: Any, operands: tuple[Operand, ...], outputs: tuple[TensorInfo, ...]) -> Sequence[Kernel]:
    """The kernels for a call of one of Relax's own operators, none where there is no rule or it does not fit."""
    rule = RULES.get(getattr(call.op, "name", ""))
    return rule(call, operands, outputs) if rule else ()
