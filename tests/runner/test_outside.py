"""A layer that writes outside of its tensors is found and named, also where the memory plan that ships hides it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from support.models.onnx_rows import Given, model_of, row
from support.run.command import Call
from uaccel.lower.placement import GUARD, place_apart
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.outside import written_outside

ROOT = Path(__file__).parents[1]
FUNCTION = ROOT / "support" / "device" / "accelerators" / "my_ai_hw"


def planted(compiled: Compiled, index: int, statement: str) -> Compiled:
    """The model with a statement at the end of a layer's C."""
    layers = list(compiled.program.layers)
    definition = layers[index].definition
    assert definition is not None
    source = definition.source.rstrip().removesuffix("}") + f"    {statement}\n}}\n"
    layers[index] = replace(layers[index], definition=replace(definition, source=source))
    program = replace(compiled.program, layers=tuple(layers))
    return replace(compiled, generated=replace(compiled.generated, program=program))


@pytest.fixture(scope="module")
def sines(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    import onnx

    path = tmp_path_factory.mktemp("outside") / "sines.onnx"
    onnx.save(model_of({"sine": row("Sin", Given((2, 5))), "tangent": row("Tan", Given((3,)))}, 17), path)
    return compile_model(path, board="host")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("out0[0] = in0[0];", ""),
        ("out0[10] = 1.0f;", 'layer 0 "sin_0" (sin, cpu) writes byte 40 of its output "sine/out0", which has 40'),
        ("out0[-1] = 1.0f;", 'layer 0 "sin_0" (sin, cpu) writes byte -4 of its output "sine/out0", which has 40'),
        (
            "((char *)out0)[40] = 0x5A;",
            'layer 0 "sin_0" (sin, cpu) writes byte 40 of its output "sine/out0", which has 40',
        ),  # there by turns
        ("((float *)in0)[3] += 1.0f;", 'layer 0 "sin_0" (sin, cpu) writes byte -'),
        ("out0[1 << 28] = 1.0f;", 'layer 0 "sin_0" (sin, cpu) ends with signal 11'),
    ],
)
def test_a_write_outside_is_found(sines: Compiled, statement: str, said: str) -> None:
    samples = [[np.ones((2, 5), np.float32), np.ones(3, np.float32)]]
    found = written_outside(planted(sines, 0, statement), samples)
    assert found.startswith(said), found
    assert bool(found) == bool(said)


def test_tensors_lie_apart(sines: Compiled) -> None:
    placement = place_apart(sines.program)
    ends = sorted((placement.plan.offsets[block.name], block.size) for block in placement.blocks)
    assert all(one + size + GUARD <= other for (one, size), (other, _) in pairwise(ends))
    assert ends[0][0] >= GUARD
    assert placement.arena == ends[-1][0] + ends[-1][1] + GUARD


def test_an_accelerator_that_writes_one_element_too_far_fails_the_verification(tmp_path: Path, call: Call) -> None:
    """Its results are right, and its device has no part in it."""
    from accelerator.test_functions import convolution, in_c

    accelerator = in_c(tmp_path / "my_ai_hw")
    driver = accelerator / "driver" / "conv2dnchw.c"
    text = driver.read_text()
    assert text.count("return 0;") == 1, text
    driver.write_text(text.replace("return 0;", "result[oc * ih * iw] = 1.0f;\n  return 0;"))
    done = call("run", convolution(tmp_path / "conv.onnx"), "-a", accelerator, "--verify")
    assert done.status == 3, done.err
    assert "verification failed: layer 0" in done.err
    assert 'my_ai_hw) writes byte 360 of its output "out", which has 360' in done.err
