"""Accelerators that are broken on purpose: ``--verify`` finds each on every network, ``--verify layers`` the layer."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.broken import ZOO, Broken
from support.command import Call
from support.networks import OWN

NETWORKS = ("gesture", "residual", "branches")
each_fault = pytest.mark.parametrize("broken", ZOO, ids=lambda broken: broken.fault)


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
@each_fault
def test_it_is_found(broken: Broken, network: str, tmp_path: Path, call: Call) -> None:
    done = call("run", OWN / f"{network}.tflite", "-a", broken.make(tmp_path), "--verify", "--json")
    assert done.status == 3, f"{broken.fault} passes"
    assert done.complaint.startswith("verification failed: ")


@pytest.mark.sample(1)
@each_fault
def test_the_layer_is_named(broken: Broken, tmp_path: Path, call: Call) -> None:
    folder = broken.make(tmp_path)
    done = call("run", OWN / "gesture.tflite", "-a", folder, "--verify", "layers", "--json")
    assert done.status == 3
    if "expand" in broken.fault:
        assert f"{folder}: expand of operation 'conv2d' changes what the model means: sample 0, " in done.complaint
        return
    told = done.report["verify"]["first_wrong_layer"]
    assert (told["engine"], told["op"]) in [(broken.accelerator, kind) for kind in broken.kinds]
    assert told["part_of"] == ("conv_2d_0_to_fully_connected_7" if broken.accelerator == "npu" else None)
    assert f'"{told["layer"]}" ({told["op"]} on {broken.accelerator})' in done.complaint
