"""Machines with memories on chip, DMA and engines that work side by side: one model, and two ways to give commands.

What both ways share is here, one file an idea: ``machine`` (memories and DMA), ``geometry`` (tensors, parts of them,
windows that slide), ``tiling`` (how large pieces are, and which sizes to try), ``search`` (the promising ones by their
cost) and ``timeline`` (engines, each with its commands in order).

C loops over intrinsics, ``accelerator/tensor``
    The CPU gives every command, through functions of the driver. uaccel knows the array itself, so this way adds its
    numbers, the layouts of weights, loops with symbolic bounds, and time by banks that interlock.
A command stream, ``streams``
    The machine fetches commands that were made ahead of time. The vendor says what computes a part of a layer, so this
    way adds layers as vendors state them, places on chip over several layers, tokens between engines, and time with
    fetching and full queues.
"""
