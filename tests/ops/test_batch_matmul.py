"""BATCH_MATMUL: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.reducing_ops import activation, batch_matmul
from support.oracle.exactness import assert_exact, assert_exact_random
from support.oracle.refusal import refusal
from support.oracle.sanitized import assert_clean

PAIRS: dict[str, tuple[tuple[int, ...], tuple[int, ...], bool, bool]] = {
    "matrices": ((3, 4), (4, 5), False, False),
    "a batch": ((2, 3, 4), (2, 4, 5), False, False),
    "left transposed": ((2, 4, 3), (2, 4, 5), True, False),
    "right transposed": ((2, 3, 4), (2, 5, 4), False, True),
    "both transposed": ((2, 4, 3), (2, 5, 4), True, True),
    "one matrix on the left": ((3, 4), (2, 4, 5), False, False),
    "one matrix on the right": ((2, 3, 4), (4, 5), False, False),
    "a batch of one on the right": ((2, 3, 4), (1, 4, 5), False, False),
    "batches that broadcast both ways": ((2, 1, 3, 4), (1, 3, 4, 5), False, False),
    "transposed batches that broadcast": ((2, 1, 4, 3), (1, 3, 5, 4), True, True),
    "rank 5": ((2, 1, 3, 1, 4), (1, 2, 1, 4, 2), False, False),
    "row times column": ((1, 9), (9, 1), False, False),
    "column times row": ((5, 1), (1, 5), False, False),
}


def table(dtype: str) -> dict[str, Row]:
    return {
        f"{name}, constant {constant or 'neither'}": batch_matmul(
            lhs, rhs, adj_x=adj_x, adj_y=adj_y, constant=constant, dtype=dtype
        )
        for name, (lhs, rhs, adj_x, adj_y) in PAIRS.items()
        for constant in ("", "lhs", "rhs")
    }


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_exact(dtype: str) -> None:
    assert_exact_random(many(table(dtype)), runs=9)


@pytest.mark.slow
def test_clean_under_sanitizers() -> None:
    rows = {f"{dtype} {name}": row for dtype in ("int8", "int16") for name, row in table(dtype).items()}
    assert_clean(many({name: row for name, row in rows.items() if "broadcast" in name or "rank" in name}), runs=3)


@st.composite
def products(draw: st.DrawFn) -> Row:
    rows, depth, columns = (draw(st.integers(1, 8)) for _ in range(3))
    batch = draw(st.lists(st.integers(1, 3), max_size=3))
    sides = []
    for matrix in ((rows, depth), (depth, columns)):
        own = [draw(st.sampled_from([1, extent])) for extent in batch]
        sides.append((*own[draw(st.integers(0, len(own))) :], *matrix))
    adj_x, adj_y = draw(st.booleans()), draw(st.booleans())
    lhs, rhs = (
        (*side[:-2], side[-1], side[-2]) if adjoint else side
        for side, adjoint in zip(sides, (adj_x, adj_y), strict=True)
    )
    zero_points = st.integers(-128, 127)
    return batch_matmul(
        lhs,
        rhs,
        adj_x=adj_x,
        adj_y=adj_y,
        constant=draw(st.sampled_from(["", "lhs", "rhs"])),
        dtype=draw(st.sampled_from(["int8", "int16"])),
        given=((draw(st.floats(0.001, 2)), draw(zero_points)), (0.03, draw(zero_points))),
        wanted=(draw(st.sampled_from([0.02, 0.5, 30.0])), draw(zero_points)),
    )


@pytest.mark.slow
@given(rows=st.lists(products(), min_size=12, max_size=12))
@settings(max_examples=4, deadline=None)
def test_any_product(rows: list[Row]) -> None:
    assert_exact_random(many(rows), runs=6, meaning=False)


def test_scales_are_multiplied_in_double_precision() -> None:
    """Scales and a sum of products at which a product of scales in single precision would give 79."""
    left, right, wanted = 0.6732655167579651, 0.3428080379962921, 1554396.5
    row = batch_matmul((1, 40000), (40000, 1), given=((left, 0), (right, 0)), wanted=(wanted, 0))
    lhs, rhs = np.zeros((1, 40000), np.int8), np.zeros((40000, 1), np.int8)
    full, rest = divmod(528681467, 127 * 127)
    lhs[0, :full], rhs[:full] = 127, 127
    lhs[0, full : full + 2], rhs[full : full + 2, 0] = divmod(rest, 127), (127, 1)
    assert (lhs.astype(np.int64) @ rhs.astype(np.int64)).item() == 528681467
    host = HostModel(assert_exact(many({"row": row}), [[lhs, rhs]]))
    assert host(lhs, rhs)[0].item() == 78


def test_it_counts_multiplications() -> None:
    layer = compile_bytes(many({"row": batch_matmul((2, 3, 4), (4, 5))})).program.layers[0]
    assert (layer.op, layer.macs) == ("batch_matmul", 2 * 3 * 4 * 5)


def mismatched(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> Row:
    row = batch_matmul((2, 3, 4), (2, 4, 5))
    return replace(row, inputs=[activation(lhs, "int8", (0.1, 0)), activation(rhs, "int8", (0.1, 0))])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (
            mismatched((2, 3, 4), (2, 5, 5)),
            "batch_matmul: 4 columns of int8 [2,3,4] meet 5 rows of int8 [2,5,5]",
        ),
        (
            mismatched((2, 3, 4), (3, 4, 5)),
            "batch_matmul: the batches of int8 [2,3,4] and int8 [3,4,5] do not fit",
        ),
        (
            mismatched((4,), (4, 5)),
            "batch_matmul: int8 [4] and int8 [4,5] have ranks other than 2 to 5",
        ),
        (
            replace(mismatched((3, 4), (4, 5)), outputs=[activation((3, 5), "int16", (0.1, 0))]),
            'output "row: output 0" is int16, supported is int8',
        ),
        (
            batch_matmul((2, 3), (3, 2), dtype="int16", wanted=(1e-9, 0)),
            "the output's scale is finer than the products' by 2**9; 16-bit activations allow 2**7",
        ),
    ],
    ids=lambda value: "" if isinstance(value, Row) else str(value)[:40],
)
def test_what_does_not_fit_is_refused(row: Row, reason: str) -> None:
    assert refusal(row) == reason
