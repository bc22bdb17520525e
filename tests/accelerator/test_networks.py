"""Whole networks partly on accelerators, on boards: the reference's bytes, and the same counts each time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.device.offload import INTEGER, Counted, Offloaded, called, offload, run
from support.models.float_convolutions import float_convolutions
from support.models.networks import NETWORKS, Network, network_named
from support.oracle.exactness import assert_same
from support.oracle.oracle import Array, Tflm, random_inputs
from support.run.command import Call, call_in
from uaccel.accelerator import load_accelerator
from uaccel.pipeline import compile_model
from uaccel.report.run_json import VIEWS
from uaccel.util.text import CPU

RUNS = 2
NOTHING_TO_OFFLOAD = "int16"
EVERYWHERE = ("host", "mps2_an386")
ELSEWHERE = {
    "nuc_fpga": "mps3_an547",
    "conveyor": "mps2_an500",
    "matrix8": "qemu_riscv32",
    "npu": "mps2_an500",
    "npu_small": "qemu_riscv32",
}
"""A board of another kind for each: a cache, a Cortex-M55, RISC-V."""
QUICK = {
    *((name, "host") for name in ("gesture", "residual", "kws")),
    ("gesture", "mps2_an386"),
}
"""In every run of the tests; the others where there is more time."""


def cases() -> list[Any]:
    rows = [
        (network.name, accelerator, board)
        for accelerator in INTEGER
        for board in EVERYWHERE
        for network in NETWORKS
        if network.name != NOTHING_TO_OFFLOAD
    ]
    rows += [(name, accelerator, board) for accelerator, board in ELSEWHERE.items() for name in ("gesture", "residual")]
    rows += [("ic", accelerator, board) for accelerator, board in ELSEWHERE.items()]
    return [
        pytest.param(name, accelerator, board, id="-".join(row), marks=() if is_quick(*row) else pytest.mark.long)
        for row in rows
        for name, accelerator, board in [row]
    ]


def is_quick(name: str, accelerator: str, board: str) -> bool:
    return (name, board) in QUICK or (name == "gesture" and board == ELSEWHERE[accelerator])


@pytest.mark.sample(3)
@pytest.mark.parametrize(("name", "accelerator", "board"), cases())
def test_the_bytes_are_the_references(name: str, accelerator: str, board: str, tmp_path: Path) -> None:
    network = network_named(name)
    data = network.path.read_bytes()
    inputs = random_inputs(data, 5, RUNS)
    offloaded = offload(network.path, [accelerator], board, tmp_path / "project")
    first, second = run(offloaded, inputs), run(offloaded, inputs)
    reference = Tflm(data)
    for number, values in enumerate(inputs):
        check_outputs(network, offloaded, first, number, reference.run(values))
    check_counts(offloaded, first, second)


def check_outputs(network: Network, offloaded: Offloaded, counted: Counted, number: int, wanted: list[Array]) -> None:
    for spec, expected in zip(offloaded.compiled.model.signature.outputs, wanted, strict=True):
        got = counted.results[number].outputs[spec.name]
        what = f'run {number}, output "{spec.name}"'
        if network.float_outputs:
            np.testing.assert_allclose(got, expected.reshape(got.shape), rtol=1e-5, atol=1e-6, err_msg=what)
        else:
            assert_same(got, expected.reshape(got.shape), what)


def check_counts(offloaded: Offloaded, first: Counted, second: Counted) -> None:
    """Every layer that is said to be offloaded was; nothing is counted differently another time."""
    assert first.numbers == second.numbers
    assert first.accounts == second.accounts
    assert len({(calls, cycles) for _, calls, cycles in first.numbers}) == 1, "values make no device slower"
    assert (first.numbers[0][0] is None) == (offloaded.board.name == "host")
    working = {row.layer for row in offloaded.compiled.partitioned.decisions if row.op.rpartition(".")[2] not in VIEWS}
    assert called(offloaded, first) == offloaded.claimed & working != set()
    on_accelerators = {layer.index for layer in offloaded.compiled.program.layers if layer.on_accelerator}
    assert set(first.accounts) == on_accelerators
    assert all(account.calls > 0 and account.cycles > 0 for account in first.accounts.values())
    assert not any(account.fallbacks for account in first.accounts.values())
    for result in first.results:
        assert result.calls == sum(account.calls for account in first.accounts.values())
        assert result.cycles == sum(account.cycles for account in first.accounts.values())


@pytest.mark.parametrize("accelerator", INTEGER)
def test_a_network_of_16_bits_stays_on_the_cpu_with_a_reason(accelerator: str) -> None:
    compiled = compile_model(
        network_named(NOTHING_TO_OFFLOAD).path, board="host", accelerators=[load_accelerator(accelerator)]
    )
    decisions = compiled.partitioned.decisions
    assert {row.engine for row in decisions} == {CPU}
    assert all(row.reason.startswith(f"{accelerator}: ") for row in decisions)
    reasons = {row.op: row.reason for row in decisions}
    assert reasons["uaccel.conv2d"].endswith("int16, wanted int8")


@pytest.mark.slow
@pytest.mark.parametrize("board", EVERYWHERE)
def test_a_float_accelerator_is_within_its_tolerance(
    board: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call: Call = call_in(capfd)
    model = tmp_path / "floats.tflite"
    model.write_bytes(float_convolutions())
    reports = []
    for _ in range(2):
        done = call("run", model, "--board", board, "--accelerator", "vanilla", "--verify", "layers", "--json")
        assert done.status == 0, done.err
        reports.append(done.report)
    first, second = reports
    assert without_seconds(first) == without_seconds(second)
    assert first["verify"]["tolerance"] == pytest.approx(1e-5)
    assert first["verify"]["within_tolerance"] is True
    assert first["verify"]["first_wrong_layer"] is None
    engines = {row["name"]: (row["engine"], row["calls"]) for row in first["layers"]}
    offloaded = {row["layer"] for row in first["offloaded"]}
    assert len(offloaded) == 2
    assert {name for name, (engine, calls) in engines.items() if engine == "vanilla" and calls} == offloaded
    assert first["accelerator_cycles"] > 0
    check_floats(model, first)


def without_seconds(report: dict[str, Any]) -> dict[str, Any]:
    return report | {"layers": [row | {"seconds": None} for row in report["layers"]]}


def check_floats(model: Path, report: dict[str, Any]) -> None:
    data = model.read_bytes()
    ramp = (((7 * np.arange(8 * 6 * 3) + 3) % 256 - 128) / 128).astype(np.float32).reshape(1, 8, 6, 3)
    (wanted,) = Tflm(data).run([ramp])
    (output,) = report["outputs"].values()
    got = np.array(output["data"], np.float32).reshape(wanted.shape)
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
