"""Firmware for board ``host``: a process that reads inputs and writes outputs."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uaccel.errors import DeviceError
from uaccel.session.tensors import TensorType

Array = NDArray[Any]
TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class HostRun:
    """``outputs`` of every run; ``layers`` of the last one by (layer, output), where they were observed."""

    outputs: list[list[Array]]
    stack: int
    layers: dict[tuple[int, int], bytes]


def run_host(
    firmware: Path, inputs: Sequence[Sequence[Array]], outputs: Sequence[TensorType], *, observe: bool = False
) -> HostRun:
    """One inference for each entry of ``inputs``, in one process."""
    stack_file, layer_file = firmware.with_suffix(".stack"), firmware.with_suffix(".layers")
    command = [str(firmware), "--stack", str(stack_file)]
    command += ["--layers", str(layer_file)] if observe else []
    data = b"".join(np.ascontiguousarray(array).tobytes() for values in inputs for array in values)
    try:
        done = subprocess.run(command, input=data, capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise DeviceError(f"the firmware did not finish within {TIMEOUT_SECONDS} s; it was stopped") from None
    except OSError as error:
        raise DeviceError(f"cannot start {firmware}: {error.strerror}") from error
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise DeviceError(f"the firmware ended with {_status(done.returncode)}: {words[0] if words else 'no message'}")
    layers = _read_layers(layer_file.read_bytes()) if observe else {}
    return HostRun(_split(done.stdout, outputs, len(inputs)), int(stack_file.read_text()), layers)


def _status(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit status {code}"


def _split(data: bytes, outputs: Sequence[TensorType], runs: int) -> list[list[Array]]:
    expected = runs * sum(tensor.size for tensor in outputs)
    if len(data) != expected:
        raise DeviceError(f"the firmware wrote {len(data)} bytes of output, {expected} were expected")
    results, position = [], 0
    for _ in range(runs):
        values = []
        for tensor in outputs:
            raw = data[position : position + tensor.size]
            values.append(np.frombuffer(raw, tensor.dtype).reshape(tensor.shape))
            position += tensor.size
        results.append(values)
    return results


def _read_layers(data: bytes) -> dict[tuple[int, int], bytes]:
    """The last run's record wins."""
    layers, position = {}, 0
    while position + 12 <= len(data):
        layer, output, size = struct.unpack_from("=3I", data, position)
        layers[layer, output] = data[position + 12 : position + 12 + size]
        position += 12 + size
    return layers
