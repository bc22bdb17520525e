"""Compiles layers for a matrix unit that a vendor states with its memories and DMA: tiles, schedules and writes C.

    MACHINE = tensor.Machine("matrix8", columns=8, depth=8, activations=tensor.Memory(16384, banks=2), ...)
    Operation("conv2d", "conv2d", tensor.convolution(MACHINE), tensor.fits(MACHINE), tensor.cycles(MACHINE))

``machine`` has the machine, a layer and its tiling; ``schedule`` the loops of a tiled layer; ``lowering`` the time of
these loops, the search for the best tiling, the packed constants and the C. What other machines with memories have as
well is in :mod:`uaccel.accelerator.machine`.
"""

from uaccel.accelerator.machine import Dma, Memory
from uaccel.accelerator.tensor.lowering import convolution, cycles, fits, timed
from uaccel.accelerator.tensor.machine import Machine

__all__ = ["Dma", "Machine", "Memory", "convolution", "cycles", "fits", "timed"]
