"""Route 3: a vendor states a matrix unit, its memories and its DMA; uaccel tiles layers, schedules them and writes C.

    MACHINE = tensor.Machine("matrix8", columns=8, depth=8, activations=tensor.Memory(16384, banks=2), ...)
    Operation("conv2d", "conv2d", tensor.convolution(MACHINE), tensor.fits(MACHINE), tensor.cycles(MACHINE))

One file per idea: ``machine`` (what there is), ``layer`` (what is wanted), ``tiling`` and ``search`` (which pieces),
``pack`` (constants as the machine reads them), ``schedule`` (the loops), ``timing`` (how long they take), ``c_text``
(the loops as C). What other machines with memories have as well is in :mod:`uaccel.machines`.
"""

from uaccel.accelerator.machine import Dma, Memory
from uaccel.accelerator.tensor.lowering import convolution, cycles, fits, timed
from uaccel.accelerator.tensor.machine import Machine

__all__ = ["Dma", "Machine", "Memory", "convolution", "cycles", "fits", "timed"]
