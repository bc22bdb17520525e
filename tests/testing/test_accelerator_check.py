"""A check of an accelerator that compares nothing of an operation fails, and says why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from uaccel.accelerator import load_accelerator
from uaccel.errors import VerificationError
from uaccel.testing.accelerator_check import Checked, Report, draw_layers


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
