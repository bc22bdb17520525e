"""Layers of floats: their kernels give the bits of their meaning, whatever compiler made them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.float_rows import ROWS, FloatRow, assert_same_bits, conv, inputs_of, together
from support.hostlib import HostModel
from support.relax_modules import compiled_module
from uaccel.tvm_api.executor import Executor

CONTRACTING = ("-std=gnu11", "-mfma", "-ffp-contract=fast")


def test_kernels_give_the_bits_of_the_meaning() -> None:
    module = together(ROWS)
    compiled = compiled_module(module)
    assert {layer.kernel.family for layer in compiled.program.layers} == {"portable"}
    host, meaning = HostModel(compiled), Executor(module)
    for seed in range(3):
        values = inputs_of(ROWS, seed)
        for name, got, wanted in zip(ROWS, host(*values), meaning.run(values), strict=True):
            assert_same_bits(got, wanted, name)
