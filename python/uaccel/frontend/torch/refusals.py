"""What is refused in words, because TVM's converter would compute something else without a word."""

from __future__ import annotations

from typing import Any

from uaccel.errors import need
from uaccel.frontend.checks import need_elements, need_size, need_type
from uaccel.frontend.torch.convert import arguments
from uaccel.frontend.torch.decompose import name_of, namespace_of
from uaccel.frontend.torch.operators import MEASURING
from uaccel.frontend.torch.program import DTYPES, EVAL, info_of_value


def check_operator(node: Any, *, ours: bool) -> None:
    """Operators that are no computation of fixed shape; ``ours``: whether a converter of ours takes it."""
    operator = name_of(node.target)
    need(namespace_of(node.target) != "higher_order", "control flow cannot be compiled; export without it")
    need(
        ours or not operator.startswith(MEASURING),
        "it finds scales at run time (dynamic quantisation), other than one for a whole tensor; quantise with a static "
        "scheme",
    )
    random = any(tag.name == "nondeterministic_seeded" for tag in getattr(node.target, "tags", ()))
    need(not random or ours, f"it draws random numbers; {EVAL}")
    values = node.meta.get("val")
    for value in values if isinstance(values, (list, tuple)) else [values]:
        if value is not None:
            _check_value(value, one_of_several=value is not values)


def _check_value(value: Any, *, one_of_several: bool) -> None:
    need(hasattr(value, "shape"), "it makes a number, not a tensor, at run time; firmware needs it fixed")
    check_extents(value, "its result")
    info = info_of_value(value)
    need_type(info.dtype, DTYPES, "its result")
    if not one_of_several:
        need_elements(info, "its result")
    need_size(info, "its result")


def check_extents(value: Any, what: str) -> None:
    """That they are known."""
    extents = ",".join(map(str, value.shape))
    need(
        all(isinstance(extent, int) for extent in value.shape),
        f"{what} has the shape [{extents}], which depends on data; firmware needs every extent fixed",
    )


def check_arguments(node: Any) -> None:
    """Of an operator that TVM's converter gets."""
    operator, given = name_of(node.target), arguments(node)
    divisor = given.get("divisor_override")
    need(divisor is None, f"divisor_override={divisor} is not supported; scale the result of a plain average pool")
    need("_aa." not in operator, "anti-aliasing is not supported; resize with antialias=False")
    if "upsample" in operator and given.get("scale_factors"):
        before, after = given["input"].meta["val"].shape[2:], node.meta["val"].shape[2:]
        factors = given["scale_factors"]
        even = all(new == old * factor for new, old, factor in zip(after, before, factors, strict=True))
        need(even, f"scale_factor {factors} does not divide {list(after)} evenly; give the size {list(after)} instead")
