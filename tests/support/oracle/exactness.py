"""One call that holds a TFLite model against its reference, three ways.

The generated C, the operators' exact meaning as TVM executes it, and TFLite Micro must give the same bytes: outputs,
and every intermediate tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from support.device.hostlib import HostModel, compile_bytes
from support.oracle.oracle import Array, Tflm, random_inputs
from uaccel.pipeline import Compiled
from uaccel.tvm_api.executor import Executor


def assert_same(actual: Array, expected: Array, what: str) -> None:
    """Bytes equal (NaN equal to NaN); the message says where the first difference is."""
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, expected {expected.shape}"
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype}, expected {expected.dtype}"
    different = np.argwhere(
        np.atleast_1d(actual != expected) & ~np.atleast_1d((actual != actual) & (expected != expected))
    )
    if len(different):
        where = tuple(int(i) for i in different[0])
        got, wanted = np.atleast_1d(actual)[where], np.atleast_1d(expected)[where]
        raise AssertionError(
            f"{what}: {len(different)} of {actual.size} differ, first at {where}: {got}, expected {wanted}"
        )


def assert_channels_of(actual: Array, expected: Array, what: str) -> None:
    """Every channel, along the last axis, is one of those expected, in their order: some may be left out."""
    if actual.size == expected.size:
        return assert_same(actual, expected.reshape(actual.shape), what)
    channels = iter(np.moveaxis(expected, -1, 0))
    for number, channel in enumerate(np.moveaxis(actual, -1, 0)):
        found = any(np.array_equal(channel.ravel(), wanted.ravel()) for wanted in channels)
        assert found, f"{what}: channel {number} is none of the {expected.shape[-1]} expected, or out of order"
    return None


def assert_exact(data: bytes, inputs: Sequence[Sequence[Array]], *, meaning: bool = True) -> Compiled:
    """``inputs``: one entry a run, each with one array an input of the model; what the model keeps of a run, all three
    keep for the next."""
    compiled = compile_bytes(data)
    reference, host = Tflm(data), HostModel(compiled)
    executor = Executor(compiled.stages["import"], state=compiled.model.state) if meaning else None
    for number, values in enumerate(inputs):
        expected = reference.run(values)
        for i, (got, wanted) in enumerate(zip(host(*values), expected, strict=True)):
            assert_same(got, wanted.reshape(got.shape), f"run {number}, output {i} of the generated C")
        assert_intermediates(host, reference, number)
        if executor is not None:
            for i, (got, wanted) in enumerate(zip(executor.run(values), expected, strict=True)):
                assert_same(got, wanted.reshape(got.shape), f"run {number}, output {i} of the exact meaning")
    return compiled


def assert_intermediates(host: HostModel, reference: Tflm, number: int) -> None:
    indices = {tensor.name: index for index, tensor in enumerate(reference.view.tensors)}
    found = reference.intermediates()
    for name, got in host.by_tensor_name().items():
        index = indices.get(name)
        if index in found:
            assert_channels_of(got, found[index], f'run {number}, tensor "{name}" of the generated C')


def assert_exact_random(data: bytes, *, runs: int = 4, seed: int = 0, meaning: bool = True) -> Compiled:
    """``assert_exact`` on random, extreme and ramp inputs."""
    return assert_exact(data, random_inputs(data, seed, runs), meaning=meaning)
