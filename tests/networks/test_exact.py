"""Whole networks against TFLite Micro: every output byte and every intermediate tensor, on generated C."""

from __future__ import annotations

import numpy as np
import pytest

from support.device.hostlib import HostModel
from support.models.networks import Network, each_network
from support.oracle.exactness import assert_intermediates, assert_same
from support.oracle.oracle import Array, Tflm, random_inputs
from uaccel.codegen.options import EmitOptions
from uaccel.pipeline import compile_model
from uaccel.tvm_api.executor import Executor

RUNS = 64
MEANING_RUNS = 3


def compare(got: Array, wanted: Array, network: Network, what: str) -> None:
    wanted = wanted.reshape(got.shape)
    if network.float_outputs:
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6, err_msg=what)
    else:
        assert_same(got, wanted, what)


@each_network
def test_generated_c_equals_the_reference(network: Network) -> None:
    data = network.path.read_bytes()
    compiled = compile_model(network.path, board="host")
    reference, host = Tflm(data), HostModel(compiled, optimise="-O2")
    for number, values in enumerate(random_inputs(data, 1, RUNS)):
        expected = reference.run(values)
        for i, (got, wanted) in enumerate(zip(host(*values), expected, strict=True)):
            compare(got, wanted, network, f"run {number}, output {i}")
        if not network.float_outputs:
            assert_intermediates(host, reference, number)


@pytest.mark.sample(3)
@each_network
def test_exact_meaning_equals_the_reference(network: Network) -> None:
    data = network.path.read_bytes()
    executor = Executor(compile_model(network.path, board="host").stages["import"])
    reference = Tflm(data)
    for number, values in enumerate(random_inputs(data, 2, MEANING_RUNS)):
        for i, (got, wanted) in enumerate(zip(executor.run(values), reference.run(values), strict=True)):
            compare(got, wanted, network, f"run {number}, output {i}")


@each_network
def test_the_arena_is_the_smallest(network: Network) -> None:
    """Of whole layers: mostly the lower bound. Where results slip along layers of one size, no smaller one exists."""
    compiled = compile_model(network.path, board="host", options=EmitOptions(whole_layers=True))
    assert compiled.placement.plan.optimal
    assert compiled.placement.arena == network.arena
