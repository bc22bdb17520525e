"""The hooks around layers: in order, with each output's bytes."""

from __future__ import annotations

from pathlib import Path

from support.device.generated import Unpacked, archive, compiled, run
from support.models.networks import OWN
from support.oracle.oracle import Tflm, random_inputs

BRANCHES = OWN / "branches.tflite"


def test_hooks_come_in_order_with_every_outputs_bytes(tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(BRANCHES))
    program = tree.program(Path(__file__).with_name("app_observer.c"), "-O1", "-DUACCEL_OBSERVE")
    data = BRANCHES.read_bytes()
    values = random_inputs(data, 6, 7)[6]
    reference = Tflm(data)
    reference.run(values)
    indices = {tensor.name: tensor.index for tensor in reference.view.tensors}

    lines = []
    layers = [layer for layer in compiled(BRANCHES).program.layers if not layer.is_view]
    for layer in layers:
        lines.append(f"begin branches {layer.index}")
        for i, value in enumerate(layer.outputs):
            content = reference.tensor(indices[value.spec.name]).tobytes().hex()
            lines.append(f"end branches {layer.index} {i} {content}")
    assert len(layers) > 10
    assert any(len(layer.outputs) > 1 for layer in layers)
    assert run(program, b"".join(value.tobytes() for value in values)).decode().splitlines() == lines
