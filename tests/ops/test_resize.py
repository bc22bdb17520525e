"""RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR: generated C, exact meaning and TFLite Micro give the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.device.hostlib import HostModel, compile_bytes
from support.models.many import Row, many
from support.models.reducing_ops import activation, resize
from support.models.single_op import Activation
from support.oracle.exactness import assert_exact_random
from support.oracle.oracle import Tflm
from support.oracle.refusal import refusal
from support.oracle.sanitized import assert_clean
from uaccel.frontend.tflite.image import nearest
from uaccel.ops.resize import ResizeBilinearAttrs, ResizeNearestAttrs
from uaccel.tvm_api.executor import Executor

NEAREST, BILINEAR = "RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR"
SIZES = {
    "twice": ((2, 3, 4, 3), (6, 8)),
    "a fraction": ((1, 5, 7, 2), (3, 9)),
    "half": ((1, 8, 8, 1), (4, 4)),
    "of one pixel": ((1, 1, 1, 4), (3, 2)),
    "to one pixel": ((1, 4, 3, 2), (1, 1)),
    "same size": ((1, 6, 5, 1), (6, 5)),
    "larger": ((1, 7, 3, 2), (16, 31)),
    "one row": ((1, 1, 9, 2), (1, 13)),
}
PLACES = {"": (False, False), ", corners": (True, False), ", centres": (False, True), ", both": (True, True)}


def table(operator: str, dtype: str) -> dict[str, Row]:
    return {
        f"{name}{place}": resize(operator, shape, size, align_corners=corners, half_pixel_centers=centres, dtype=dtype)
        for name, (shape, size) in SIZES.items()
        for place, (corners, centres) in PLACES.items()
        if operator == NEAREST or not (corners and centres)
    }


@pytest.mark.sample(1)
@pytest.mark.parametrize(("operator", "dtype"), [(NEAREST, "int8"), (NEAREST, "int16"), (BILINEAR, "int8")])
def test_exact(operator: str, dtype: str) -> None:
    assert_exact_random(many(table(operator, dtype)), runs=9)


def test_columns_are_kept_where_an_image_becomes_wider() -> None:
    """Two columns of sums, whatever the image's width; other images take no scratch memory."""
    found = {
        name: compile_bytes(many({name: resize(BILINEAR, (1, 6, 6, 5), size)})).program.layers[0].kernel
        for name, size in {"wider": (6, 7), "as wide": (9, 6), "narrower": (9, 5)}.items()
    }
    assert {name: kernel.scratch for name, kernel in found.items()} == {"wider": 40, "as wide": 0, "narrower": 0}
    assert found["wider"].calls[0].function == "uaccel_resize_bilinear_wider_s8"


def test_clean_under_sanitizers() -> None:
    rows = {f"{o} {name}": row for o in (NEAREST, BILINEAR) for name, row in table(o, "int8").items()}
    assert_clean(many({name: row for name, row in rows.items() if "larger" in name or "pixel" in name}), runs=3)


def test_bilinear_ignores_the_outputs_quantisation() -> None:
    """As the reference does: it passes on what is stored."""
    row = resize(BILINEAR, (1, 3, 3, 2), (5, 5))
    other = activation(row.outputs[0].shape, "int8", (0.2, -7))
    assert_exact_random(many({"row": replace(row, outputs=[other])}), runs=3)


@st.composite
def resizes(draw: st.DrawFn) -> Row:
    operator = draw(st.sampled_from([NEAREST, BILINEAR]))
    shape = (1, draw(st.integers(1, 20)), draw(st.integers(1, 20)), draw(st.integers(1, 3)))
    size = (draw(st.integers(1, 40)), draw(st.integers(1, 40)))
    corners, centres = draw(st.booleans()), draw(st.booleans())
    if operator == BILINEAR:
        attrs = ResizeBilinearAttrs(size, corners, centres)
        assume(not (corners and centres))
        assume(all(attrs.overshoot(axis, shape[1 + axis]) < 1024 for axis in (0, 1)))
    dtype = draw(st.sampled_from(["int8", "int16"])) if operator == NEAREST else "int8"
    return resize(operator, shape, size, align_corners=corners, half_pixel_centers=centres, dtype=dtype)


@pytest.mark.slow
@given(rows=st.lists(resizes(), min_size=10, max_size=10))
@settings(max_examples=5, deadline=None)
def test_any_resize(rows: list[Row]) -> None:
    assert_exact_random(many(rows), runs=4, meaning=False)


@given(extent=st.integers(1, 150), out=st.integers(1, 300), corners=st.booleans(), centres=st.booleans())
@settings(max_examples=200, deadline=None)
def test_nearest_pixels_are_the_references(extent: int, out: int, corners: bool, centres: bool) -> None:
    row = resize(NEAREST, (1, extent, 1, 1), (out, 1), align_corners=corners, half_pixel_centers=centres, dtype="int16")
    column = np.arange(extent, dtype=np.int16).reshape(1, extent, 1, 1)
    shown = Tflm(many({"row": row})).run([column])[0].reshape(-1)
    assert nearest(extent, out, ResizeNearestAttrs(corners, centres)).tolist() == shown.tolist()


def test_bilinear_shows_the_last_pixel_where_the_rounded_step_runs_beyond_it() -> None:
    """One pixel to 65, as image pooling in segmentation networks does: the reference reads behind its input."""
    compiled = compile_bytes(many({"row": resize(BILINEAR, (1, 1, 1, 3), (65, 65))}))
    assert ResizeBilinearAttrs((65, 65), False, False).overshoot(0, 1) == 1024
    pixel = np.array([-128, 5, 127], np.int8).reshape(1, 1, 1, 3)
    for output in (HostModel(compiled)(pixel)[0], Executor(compiled.stages["import"]).run([pixel])[0]):
        assert (output == pixel).all()


def test_a_step_that_runs_far_off_is_refused() -> None:
    assert refusal(resize(BILINEAR, (1, 2, 1, 1), (4095, 1))) == (
        "resize_bilinear: int8 [1,2,1,1] to (4095, 1) runs 3.0 pixels off"
    )


def test_corners_and_centres_together_are_refused() -> None:
    row = resize(BILINEAR, (1, 2, 2, 1), (4, 4), align_corners=True, half_pixel_centers=True)
    assert refusal(row) == "align_corners and half_pixel_centers exclude each other"


def test_bilinear_of_16_bits_is_refused() -> None:
    row = resize(BILINEAR, (1, 2, 2, 1), (4, 4), dtype="int16")
    assert refusal(row) == 'input "row: input 0" is int16, supported is int8'


def test_a_size_of_run_time_is_refused() -> None:
    row = resize(NEAREST, (1, 2, 2, 1), (4, 4))
    assert refusal(replace(row, inputs=[row.inputs[0], Activation((2,), "int32")])) == (
        'size "row: input 1" is computed at run time; only constant size can be compiled'
    )
