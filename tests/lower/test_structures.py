"""A field that a kernel's structure has in C and Python does not give is an error, not a zero."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from uaccel.errors import InternalError
from uaccel.lower.program import check_parameters, fields_of
from uaccel.ops.kernel import Input, Kernel, Output, ParameterValue, portable

POOL = {"geo.batch": 1, **{f"geo.{side}_{of}": 1 for side in ("in", "out") for of in ("height", "width", "channels")}}
POOL |= {f"geo.{kind}_{axis}": 1 for kind in ("kernel", "stride", "dilation") for axis in ("height", "width")}
POOL |= {"geo.pad_top": 1, "geo.pad_left": 1, "clamp_min": -128, "clamp_max": 127}


def pool(parameters: Mapping[str, ParameterValue], struct: str = "uaccel_pool") -> Kernel:
    return portable("uaccel_max_pool_s8", struct, parameters, (Input(0), Output(0)))


def test_fields_are_those_of_the_header() -> None:
    assert list(fields_of("uaccel_pool")) == list(POOL)
    assert fields_of("uaccel_add")["extents"] == 6
    assert {name.partition(".")[0] for name in fields_of("uaccel_add_helium")} >= {"first", "second", "finish"}
    assert "finish.zero_point" in fields_of("uaccel_add_helium")


def test_a_complete_call_is_let_through() -> None:
    assert check_parameters(pool(POOL)) == pool(POOL)


@pytest.mark.parametrize(
    ("kernel", "complaint"),
    [
        (
            pool({name: value for name, value in POOL.items() if name != "geo.pad_left"}),
            " without its field geo.pad_left; ",
        ),
        (pool(POOL | {"pad_right": 1}), " and 1 numbers for pad_right, which takes 0"),
        (pool(POOL | {"geo.batch": (1, 2)}), " and 2 numbers for geo.batch, which takes 1"),
        (pool(POOL, "uaccel_pond"), "no header of firmware/kernels declares struct uaccel_pond"),
    ],
)
def test_any_other_is_refused(kernel: Kernel, complaint: str) -> None:
    with pytest.raises(InternalError, match=re.escape(complaint)):
        check_parameters(kernel)


def test_every_call_of_a_kernel_is_looked_at() -> None:
    calls = (*pool(POOL).calls, *pool({}).calls)
    with pytest.raises(InternalError, match=r"called with struct uaccel_pool without its field geo\.batch"):
        check_parameters(replace(pool(POOL), calls=calls))
