"""Every network under the sanitizers, and the watchers themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from support.device.generated import compiled
from support.models.networks import Network, each_network
from support.models.windows import Window, conv_2d
from support.oracle.oracle import Tflm, random_inputs
from support.oracle.sanitized import POOL, compile_pooled, run_sanitized
from uaccel.pipeline import Compiled

RUNS = 4


@pytest.mark.sample(3)
@each_network
@pytest.mark.parametrize("compiler", ["gcc", pytest.param("clang", marks=pytest.mark.long)])
def test_sanitizers_find_nothing_and_outputs_are_exact(network: Network, compiler: str) -> None:
    data = network.path.read_bytes()
    inputs = random_inputs(data, 3, RUNS)
    results = run_sanitized(compiled(network.path, workspace_pool=POOL), inputs, compiler)
    reference = Tflm(data)
    for values, outputs in zip(inputs, results, strict=True):
        for got, wanted in zip(outputs, reference.run(values), strict=True):
            if network.float_outputs:
                np.testing.assert_allclose(got, wanted.reshape(got.shape), rtol=1e-5, atol=1e-6)
            else:
                np.testing.assert_array_equal(got, wanted.reshape(got.shape))


SMALL = conv_2d(Window(input=(1, 3, 3, 1), channels=2))
LAYER = "    layer_conv_2d_0("


def broken(statement: str) -> Compiled:
    """A model whose generated C has something too much before its only layer's call."""
    model = compile_pooled(SMALL)
    sources = dict(model.generated.sources)
    text = sources["tvmgen_model.c"]
    before, call, after = text.partition(LAYER)
    assert call
    sources["tvmgen_model.c"] = f"{before}    {statement}\n{call}{after}"
    return replace(model, generated=replace(model.generated, sources=sources))


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("((int8_t *)outputs->output_0)[TVMGEN_MODEL_OUTPUT_0_SIZE] = 1;", "heap-buffer-overflow"),
        ("((int8_t *)outputs->output_0)[0] = ((int8_t *)inputs->input_0)[-1];", "heap-buffer-overflow"),
        ("((int8_t *)inputs->input_0)[3] ^= 1;", "the run wrote to input 0"),
        ("if (outputs == NULL)", "former content of the memory shows in output 0"),
        ("{ static volatile int32_t i = INT32_MAX; i = i + 1; }", "signed integer overflow"),
        ("if (inputs != NULL) { return -7; }", "the model returned -7"),
    ],
)
def test_the_watchers_see(statement: str, words: str) -> None:
    inputs = random_inputs(SMALL, 0, 1)
    with pytest.raises(AssertionError, match=words):
        run_sanitized(broken(statement), inputs)
