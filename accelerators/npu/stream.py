"""A region becomes a stream: planned by uaccel, packed for the machine, and printed for people."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np

from uaccel.accelerator import (
    AcceleratorError,
    Constant,
    Input,
    KernelCall,
    Lowered,
    Output,
    Region,
    Scratch,
    library_call,
)
from uaccel.streams import WORD, Effort, Planned, listing, pack, plan_network

from .commands import FORMAT, FORMATS, HEADER_WORDS, MAGIC
from .machine import Npu
from .network import VIEW, network_of

ALL_ONES: Final = 0xFFFFFFFF
PLACES: Final = 64
WRITTEN: Final = 16
"""Places that the driver can remember as written."""


def lower_region(region: Region, npu: Npu, objective: str, effort: Effort) -> Lowered:
    """The calls of the driver that say where everything lies and play the stream; and files for a reader."""
    if 2 + len(region.inputs) + len(region.outputs) > PLACES or 1 + len(region.outputs) > WRITTEN:
        raise AcceleratorError(
            f"{npu.name}: the region from {region.calls[0].name} to {region.root.name} has {len(region.inputs)} inputs "
            f"and {len(region.outputs)} outputs, and a stream has {PLACES - 2} at most, {WRITTEN - 1} of them outputs; "
            f"forbid {npu.name} a layer in its middle"
        )
    planned = plan_network(npu.machine, network_of(region, npu), objective, effort)
    stream = packed(planned, npu)
    calls = []
    if planned.constants:
        constants = Constant("constants", np.frombuffer(planned.constants, np.uint8))
        calls.append(_place(npu, 0, constants, len(planned.constants), written=False))
    for number, tensor in enumerate(region.inputs, 1):
        calls.append(_place(npu, number, Input(number - 1), tensor.info.size, written=False))
    for index, tensor in enumerate(region.outputs):
        calls.append(_place(npu, 1 + len(region.inputs) + index, Output(index), tensor.info.size, written=True))
    if planned.scratch:
        number = 1 + len(region.inputs) + len(region.outputs)
        calls.append(_place(npu, number, Scratch(), planned.scratch, written=True))
    layers = sum(call.op != VIEW for call in region.calls)
    data = Constant("stream", np.frombuffer(stream, np.uint8))
    calls.append(library_call(f"{npu.name}_play", data, len(stream), layers))
    files: dict[str, str | bytes] = {
        "stream.bin": stream,
        "constants.bin": planned.constants,
        "stream.txt": listing(planned, npu.summary, region),
    }
    return Lowered(
        tuple(calls),
        planned.scratch,
        artefacts=files,
        **planned.told,
        instructions=300 + 95 * len(calls),  # measured on a Cortex-M4
    )


def packed(planned: Planned, npu: Npu) -> bytes:
    """The header says what machine this is for, and how long it will take."""
    stream = planned.stream
    body = b"".join(
        pack(FORMATS[command.kind], command.fields, tokens)
        for command, tokens in zip(stream.commands, stream.tokens, strict=True)
    )
    size = HEADER_WORDS * WORD + len(body)
    machine = (npu.config, npu.activation_bytes, npu.weight_bytes, npu.sum_bytes)
    header = (MAGIC, FORMAT, size, *machine, min(planned.timeline.total, ALL_ONES))
    return struct.pack(f"<{HEADER_WORDS}I", *header) + body


def _place(npu: Npu, number: int, memory: Constant | Input | Output | Scratch, size: int, written: bool) -> KernelCall:
    return library_call(f"{npu.name}_place", number, memory, size, int(written))
