"""matrix8: an 8x8 int8 matrix unit with on-chip memories and DMA, which uaccel tiles layers to."""

from uaccel.accelerator import ROUNDINGS, Accelerator, Operation, tensor

KIB = 1024

MACHINE = tensor.Machine(
    "matrix8",
    columns=8,
    depth=8,
    activations=tensor.Memory(16 * KIB, banks=2),
    weights=tensor.Memory(16 * KIB, banks=2, alignment=64),
    accumulators=tensor.Memory(16 * KIB, banks=2, alignment=32),
    parameters=tensor.Memory(6 * KIB, banks=2, alignment=32),
    load=tensor.Dma(bytes_per_cycle=8, start_up=16),
    store=tensor.Dma(bytes_per_cycle=8, start_up=16),
    start_up=8,
    issue=80,
    single=True,
)

MATMUL = (tensor.convolution(MACHINE), tensor.fits(MACHINE), tensor.cycles(MACHINE))

ACCELERATOR = Accelerator(
    name="matrix8",
    description="8x8 int8 matrix unit with on-chip memories, DMA and an output stage; layers are tiled to it",
    headers=["matrix8.h"],
    page="../../docs/bring-your-accelerator.md#ways-to-call-the-hardware",
    memories=MACHINE.memories,
    macs_per_cycle=MACHINE.block_bytes,
    bytes_per_cycle=MACHINE.load.bytes_per_cycle,
    operations=[
        Operation("conv2d", "conv2d", *MATMUL, roundings=ROUNDINGS),
        Operation("depthwise_conv2d", "depthwise_conv2d", *MATMUL, roundings=ROUNDINGS),  # of one channel
        Operation("dense", "fully_connected", *MATMUL, roundings=ROUNDINGS),
    ],
)
