"""A matrix unit with on-chip memories and DMA, as its designers state it.

Each cycle the array multiplies ``depth`` int8 values of one pixel with the weights of ``columns`` output channels and
adds to int32 accumulators. Three engines work side by side, each in the order of its commands: one loads (and fills),
one multiplies, one stores. A command waits until all earlier commands that use one of the same banks of on-chip memory
are done, whether by interlocks or because whoever takes the commands adds what they wait for.

The intrinsics are C functions of the driver, called after the machine (``matrix8_load``). Offsets, pitches and strides
count bytes:

    void X_begin(void)                                          commands follow; forget earlier errors
    void X_share(const void *memory, int32_t bytes)             the device will read or write this memory
    void X_output(zero_point, clamp_min, clamp_max)             how later stores end; a machine with ``single`` has it
                                                                as a fourth argument: 1 for single precision's rounding
    void X_window(kernel_rows, kernel_columns, run, kernel_row_pitch, kernel_column_pitch, row_pitch, column_pitch)
                                                                what later multiplications read for one output pixel:
                                                                kernel_rows x kernel_columns runs of `run` bytes
    void X_fill(memory, offset, bytes, value)                   bytes of on-chip memory, all alike
    void X_load(memory, offset, pitch, const void *from, at, stride, rows, bytes)
                                                                2-D DMA: `bytes` from each of `rows`; none does nothing
    void X_multiply(accumulators, activations, weights, rows, columns, blocks, add)
                                                                rows x columns pixels times `blocks` x `columns of the
                                                                array` channels; adds to the accumulators if `add`
    void X_store(void *to, at, stride, accumulators, parameters, pixels, channels)
                                                                output stage: bias, multiplier and shift per channel in
                                                                TFLite's rounding, zero point, clamp; then 2-D DMA
    int32_t X_finish(void *memory, int32_t bytes)               wait for all; 0, or the first error since X_begin; this
                                                                memory was written

The memories are X_ACTIVATIONS, X_WEIGHTS and X_PARAMETERS in capitals. After an error commands do nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from uaccel.basics.numbers import round_up
from uaccel.machines import machine
from uaccel.machines.machine import Dma, Memory

PARAMETERS_PER_CHANNEL: Final = 3
"""Bias, multiplier, shift: int32 each."""
WORD: Final = 4
MEMORIES: Final = ("activations", "weights", "accumulators", "parameters")


@dataclass(frozen=True)
class Machine(machine.Machine):
    """``parameters`` holds bias, multiplier and shift of output channels; ``start_up`` is of a multiplication.

    ``issue``: cycles of the CPU to give one command. ``single``: the output stage also rounds as single precision does,
    where a multiplier's low 7 bits are added to the sum in 128ths (:mod:`uaccel.ops.rounding`).
    """

    name: str
    columns: int
    depth: int
    activations: Memory
    weights: Memory
    accumulators: Memory
    parameters: Memory
    load: Dma
    store: Dma
    start_up: int
    fill_bytes_per_cycle: int = 8
    issue: int = 0
    single: bool = False

    def __post_init__(self) -> None:
        blocks = {"weights": self.block_bytes, "accumulators": self.pixel_bytes, "parameters": self.parameter_bytes}
        for name, size in blocks.items():
            alignment = self.memory(name).alignment
            if size % alignment:
                raise ValueError(
                    f"{self.name}: {name} come in units of {size} bytes, which cannot be aligned to {alignment}"
                )

    @cached_property
    def step(self) -> int:
        """The input channels that come together: as many as the array takes at once, and pixels that are aligned."""
        return round_up(self.depth, self.activations.alignment)

    @property
    def block_bytes(self) -> int:
        """The weights that the array takes in one cycle."""
        return self.columns * self.depth

    @property
    def pixel_bytes(self) -> int:
        """The accumulators of one pixel's ``columns`` channels."""
        return self.columns * WORD

    @property
    def parameter_bytes(self) -> int:
        """The output stage's parameters for ``columns`` channels."""
        return self.columns * PARAMETERS_PER_CHANNEL * WORD

    def intrinsic(self, name: str) -> str:
        return f"{self.name}_{name}"

    @property
    def memories(self) -> dict[str, int]:
        """For :class:`uaccel.accelerator.Accelerator`."""
        return {name: self.memory(name).bytes for name in MEMORIES}
