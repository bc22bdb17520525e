"""Which operators a file may name: those that are converted, and those that PyTorch takes apart into such.

PyTorch's own loader looks a name up wherever it leads. Here it leads to an operator of three libraries, or to
arithmetic.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any, Final

from uaccel.frontend.torch.decompose import FURTHER, WHOLE

_OPERATOR: Final = re.compile(
    r"torch\.ops\.(aten|quantized_decomposed|torchao)\.([A-Za-z0-9_]{1,80})\.([A-Za-z0-9_]{1,80})"
)
_CHECKS: Final = frozenset(
    {
        *("_assert_tensor_metadata.default", "_assert_scalar.default", "_assert_async.msg"),
        *("sym_constrain_range.default", "sym_constrain_range_for_size.default"),
    }
)
"""They compute nothing. What they check of shapes is checked by giving operators the shapes."""
_BESIDES: Final = frozenset(
    {
        *(
            "lift_fresh_copy.default",
            "lift.default",
            "detach_.default",
            "_weight_norm.default",
            "_pad_circular.default",
        ),
        *("_upsample_bilinear2d_aa.vec", "_upsample_bicubic2d_aa.vec", "_fused_rms_norm.default"),
        *("_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec"),
    }
)
"""PyTorch takes these away or apart as well."""
MEASURING: Final = ("choose_qparams",)
"""They find scales at run time, and are refused in words of their own."""
_TYPES: Final = re.compile(r"(Optional\[|List\[|\]|Tensor|int|float|bool|str|number|Device|Generator)+")

_COMPARING: Final = ("eq", "ne", "le", "ge", "lt", "gt")
_COMPUTING: Final = ("neg", "pos", "mul", "add", "sub", "floordiv", "mod", "truediv")
ARITHMETIC: Final[dict[str, Callable[..., Any]]] = (
    {f"_operator.{name}": getattr(operator, name) for name in _COMPARING + _COMPUTING}
    | {"math.ceil": math.ceil, "math.floor": math.floor, "math.trunc": math.trunc, "torch.sym_not": operator.not_}
    | {"torch.sym_max": max, "torch.sym_min": min, "torch.sym_int": int, "torch.sym_float": float}
)
"""What programs do with extents."""


def resolved(torch: Any, target: str, table: Any, known: Callable[[Any], bool]) -> Any:
    """The operator, or None for one that no program may call.

    ``table``: what PyTorch takes apart; ``known``: whether there is a converter.
    """
    match = _OPERATOR.fullmatch(target)
    if match is None:
        return None
    library, name, overload = match.groups()
    packet = getattr(getattr(torch.ops, library), name, None)
    if not isinstance(packet, torch._ops.OpOverloadPacket) or overload not in packet.overloads():
        return None
    found = getattr(packet, overload)
    if not _is_plain(found):
        return None
    if library == "aten":
        return found if _is_allowed(torch, found, table, known) else None
    return found if known(found) or name.startswith(MEASURING) else None


def _is_plain(found: Any) -> bool:
    """Whether it takes tensors and numbers, and gives what is new."""
    types = [str(entry.type) for entry in (*found._schema.arguments, *found._schema.returns)]
    out = any(entry.is_out for entry in found._schema.arguments)
    return not out and all(_TYPES.fullmatch(text) for text in types)


def _is_allowed(torch: Any, found: Any, table: Any, known: Callable[[Any], bool]) -> bool:
    name = found.__name__
    if name in _CHECKS or name in _BESIDES or name in WHOLE or name in FURTHER or known(found):
        return True
    if torch.Tag.core in found.tags or torch.Tag.nondeterministic_seeded in found.tags:
        return True
    if torch._C._dispatch_has_kernel_for_dispatch_key(found.name(), "CompositeImplicitAutograd"):
        return not name.startswith("_") or name.startswith("__")
    if found in table:
        return True
    base, _, overload = name.partition(".")
    pure = getattr(torch.ops.aten, base[:-1], None) if base.endswith("_") and not base.endswith("__") else None
    return (
        pure is not None and overload in pure.overloads() and _is_allowed(torch, getattr(pure, overload), table, known)
    )
