"""What costs depend on: the sizes of calls, counted here one by one, and the products of them."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest

from uaccel.kernels import Option, Work
from uaccel.kernels.choice import CYCLES, INSTRUCTIONS, shipped_costs
from uaccel.kernels.terms import BASIC, SIZES, cost_of, sizes_of, term_of
from uaccel.ops.kernel import KernelCall


def geometry(image: tuple[int, int], out: tuple[int, int], reach: tuple[int, int], **more: int) -> dict[str, Any]:
    sides = {"in": image, "out": out, "kernel": reach, "stride": (1, 1), "dilation": (1, 1)}
    fields = {
        f"geo.{name}_{axis}": pair[i] for name, pair in sides.items() for i, axis in enumerate(("height", "width"))
    }
    return (
        {"geo.batch": 2, "geo.in_channels": 6, "geo.out_channels": 10, "geo.pad_top": 0, "geo.pad_left": 0}
        | fields
        | more
    )


def beside(
    image: tuple[int, int], out: tuple[int, int], window: tuple[int, int], pad: int, step: int, reach: int
) -> int:
    """Windows of one image of which some element lies beside it."""

    def leaves(y: int, x: int) -> bool:
        rows = [y * step - pad + i * reach for i in range(window[0])]
        columns = [x * step - pad + i * reach for i in range(window[1])]
        return not all(0 <= r < image[0] for r in rows) or not all(0 <= c < image[1] for c in columns)

    return sum(leaves(y, x) for y, x in product(range(out[0]), range(out[1])))


@pytest.mark.parametrize(
    ("image", "out", "window", "pad", "step", "reach"),
    [
        ((9, 7), (9, 7), (3, 3), 1, 1, 1),
        ((9, 7), (7, 5), (3, 3), 0, 1, 1),
        ((9, 8), (5, 4), (3, 3), 1, 2, 1),
        ((5, 5), (5, 5), (3, 3), 2, 1, 2),
        ((2, 2), (2, 2), (5, 5), 2, 1, 1),
        ((6, 1), (6, 1), (3, 1), 1, 1, 1),
    ],
)
def test_windows_beside_the_image_are_counted(
    image: tuple[int, int], out: tuple[int, int], window: tuple[int, int], pad: int, step: int, reach: int
) -> None:
    more = {"geo.pad_top": pad, "geo.pad_left": pad if image[1] > 1 else 0}
    more |= {
        f"geo.{name}_{axis}": n for name, n in (("stride", step), ("dilation", reach)) for axis in ("height", "width")
    }
    sizes = sizes_of(geometry(image, out, window, **more), 0, 2 * out[0] * out[1] * 10)
    wide = image if image[1] > 1 else (image[0], 1)
    expected = beside(wide, out, window, pad, step, reach) if image[1] > 1 else 2
    assert sizes["e"] == 2 * expected


@pytest.mark.parametrize(
    ("parameters", "macs", "outputs", "wanted"),
    [
        ({}, 600, 20, {"p": 20, "c": 1, "t": 30, "f": 30, "e": 0, "g": 1}),
        (geometry((9, 7), (9, 7), (3, 3)), 68_040, 1260, {"p": 126, "l": 18, "w": 7, "c": 10, "t": 54, "h": 3, "r": 1}),
        (geometry((9, 7), (9, 7), (3, 3), window=14, copied=1), 68_040, 1260, {"f": 56, "m": 1}),
        (geometry((9, 7), (9, 7), (1, 1), copied=2), 7560, 1260, {"e": 126, "m": 0, "i": 126, "d": 6}),
        ({"geo.kernel_height": 5, "geo.kernel_width": 3, "geo.out_channels": 4}, 0, 8, {"t": 15, "c": 4, "r": 0}),
        ({"rows": 3, "depth": 40, "units": 12, "filled": 48}, 1440, 36, {"p": 3, "c": 12, "t": 40, "f": 48}),
        ({"extents": (1, 1, 1, 5, 6, 28), "sign": 1}, 0, 840, {"p": 30, "c": 28, "s": 0}),
        ({"outer": 2, "reduced_outer": 9, "inner": 8, "reduced_inner": 1}, 0, 16, {"p": 2, "c": 8, "t": 9}),
        ({"out_height": 6, "out_channels": 8, "direct": 2, "inside": 9, "taken": 3}, 0, 480, {"u": 4, "n": 3}),
        ({"finish.flags": 5, "out_channels": 4}, 0, 4, {"s": 1, "z": 1}),
        ({"finish.sign": 1, "finish.clamp": 0, "out_channels": 4}, 0, 4, {"s": 1, "z": 0}),
        (
            {"out_height": 10, "out_width": 9, "channels": 8, "region_height": 4, "region_width": 9, "count": 5}
            | {"loads": 2, "rows": 6, "pitch": 12},
            6480,
            720,
            {"p": 3 * 5 * 8, "t": 0.5, "g": 3, "i": 3 * 72},
        ),
        ({"region_height": 1, "region_width": 8, "loads": 1, "out_height": 1, "out_width": 8}, 0, 8, {"t": 1, "g": 1}),
        ({"rows": 2, "depth": 10, "entries": 64}, 0, 20, {"p": 2, "c": 10, "t": 0.25}),
        ({"in_channels": 24, "out_channels": 4, "inside": 9, "taken": 0}, 0, 4, {"n": 18, "m": 1}),
        ({"in_channels": 32, "out_channels": 4, "inside": 9, "taken": 0}, 0, 4, {"n": 18, "m": 0}),
        ({"out_height": 10, "channels": 8, "band": 4, "plane": 40}, 0, 720, {"g": 3, "i": 120}),
    ],
)
def test_the_sizes_of_a_call(parameters: dict[str, Any], macs: int, outputs: int, wanted: dict[str, float]) -> None:
    sizes = sizes_of(parameters, macs, outputs)
    assert sizes.keys() == SIZES.keys()
    assert {name: sizes[name] for name in wanted} == wanted
    assert [term_of(term, sizes_of(parameters, macs, outputs)) for term in BASIC[2:]] == [1]


@pytest.mark.parametrize(
    ("term", "value"), [("1", 1), ("p", 5), ("p2", 6), ("p2 c4 t16", 6 * 8 * 16), ("p4 c", 8 * 7), ("e", 0)]
)
def test_terms_round_up_to_blocks(term: str, value: float) -> None:
    assert term_of(term, sizes_of({"out_channels": 7}, 35 * 9, 35)) == value


def test_calls_of_one_function_divide_the_work() -> None:
    calls = tuple(KernelCall("f", "", "", {"geo.out_channels": 4}, ()) for _ in range(3))
    option = Option("f", ("f",), effort=2.0, calls=calls)
    sizes = option.sizes("f", Work(macs=600, outputs=24))
    assert [(each["p"], each["c"], each["t"]) for each in sizes] == [(2, 4, 50)] * 3
    assert sum(cost_of({"p c t": 2.0, "1": 10.0}, each) for each in sizes) == 2 * 1200 + 30


def test_the_shipped_costs_are_complete() -> None:
    shipped = shipped_costs()
    assert shipped[CYCLES].keys() < shipped[INSTRUCTIONS].keys()
    for cpu, functions in [row for costs in shipped.values() for row in costs.items()]:
        assert functions.keys() == shipped[INSTRUCTIONS][cpu].keys()
        for function, terms in functions.items():
            assert function.startswith("uaccel_"), cpu
            assert terms, function
            assert all(value >= 0 for value in terms.values())
            words = [word for term in terms for word in term.split() if term != "1"]
            assert all(word[0] in SIZES and re.fullmatch(r"[a-z]\d*", word) for word in words), function
