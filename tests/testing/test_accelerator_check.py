"""Checks of accelerators: those that compare nothing of an operation fail and say why; a layer can be repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from uaccel.accelerator import load_accelerator, relax
from uaccel.errors import AcceleratorError, VerificationError
from uaccel.testing.accelerator_check import Checked, CheckRequest, Report, check, draw_layers, region_for
from uaccel.testing.random_case import Case, call_of, drawn
from uaccel.tvm_api import ModuleBuilder
from uaccel.tvm_api.executor import Executor


def test_an_operation_that_refuses_every_layer_fails_the_check() -> None:
    known = load_accelerator("nuc_fpga")
    first, *others = known.operations
    accelerator = replace(known, operations=(replace(first, check=lambda _: "it is Monday"), *others))
    report: dict[tuple[str, str], Checked] = {}
    rows = draw_layers(accelerator, 1, 0, report)
    assert {operation.name for operation, _ in rows} == {operation.name for operation in others}
    for operation, case in rows:
        report[operation.name, case.op].layers += 1
    with pytest.raises(VerificationError) as caught:
        Report("nuc_fpga", "model", "host", 0, list(report.values()), [], None).require_right()
    assert str(caught.value) == (
        "nuc_fpga: no layer of operation conv2d (conv2d) was compared: it refused all 372 that were drawn, "
        'the last because "it is Monday"; its check must take some layer, or the operation must go'
    )
    Report("nuc_fpga", "model", "host", 0, list(report.values())[1:], [], None).require_right()


DRAWN = ("conv2d", "depthwise_conv2d", "fully_connected", "add", "sub", "average_pool2d", "max_pool2d")


@pytest.mark.parametrize("rounding", ["tflite", "float32"])
@pytest.mark.parametrize("op", DRAWN)
def test_the_words_of_a_layer_are_that_layer(op: str, rounding: str) -> None:
    for seed in range(50):
        case = drawn(op, np.random.default_rng(seed), rounding)
        assert Case.of(str(case)) == case


WORDS = str(drawn("add", np.random.default_rng(0)))


@pytest.mark.parametrize(
    "words",
    [
        "",
        "add",
        WORDS.replace("add", "exp"),
        WORDS.replace("batch 1, ", ""),
        WORDS.replace("batch 1", "batch 0"),
        WORDS.replace("batch 1", "batch 9999"),
        WORDS.replace(")", ", half)"),
    ],
)
def test_other_words_are_no_layer(words: str) -> None:
    with pytest.raises(AcceleratorError) as caught:
        Case.of(words)
    assert str(caught.value) == f"{words!r} is no layer; wanted one in the words of a failed 'uaccel check'"


def test_a_layer_that_no_operation_takes() -> None:
    with pytest.raises(AcceleratorError) as caught:
        check(CheckRequest(load_accelerator("dot4"), layer=Case.of(WORDS)))
    assert str(caught.value) == (
        f"dot4 does not compute {WORDS}: no operation is about such a layer; name a layer that it takes"
    )


def test_sums_of_one_scale_are_drawn() -> None:
    """Layers of an adder without an output stage: what they mean is x + y, as numpy adds."""
    cases = [case for seed in range(20) if (case := drawn("add", np.random.default_rng(seed)))["shifted"]]
    assert cases
    for case in cases:
        region, (x, y) = region_for(case), (array.astype(int) for array in case.inputs())
        assert region is not None
        attrs = region.attrs
        offset = attrs.output_zero_point - attrs.zero_point1 - attrs.zero_point2
        wanted = np.clip(x + y + offset, attrs.clamp_min, attrs.clamp_max)
        variables = [relax.Var(f"x{i}", relax.TensorType(x.shape, "int8")) for i in range(2)]
        builder = ModuleBuilder()
        with builder.function(variables) as block:
            block.finish(block.emit(call_of(case, *variables), "sum"))
        assert np.array_equal(Executor(builder.module).run(case.inputs())[0], wanted)
