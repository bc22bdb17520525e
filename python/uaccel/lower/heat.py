"""How often each byte of a tensor is read and written in an inference: what lies in fast memory is chosen by that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from uaccel.lower.program import Layer, Program

WORKING = 1e6
"""Of a kernel's scratch memory, which its inner loops go through again and again, and of constants that were copied
so that they lie in fast memory."""
_EACH_FOR_ALL_CHANNELS = ("conv2d", "fully_connected")
"""Operators that compute all output channels of what they have read once, or a few times."""


def heat_of(program: Program, owner: Mapping[str, str], working: Iterable[str]) -> dict[str, float]:
    """Accesses a byte, by the name of the block that holds the tensor; of tensors that share one, the most.
    ``working``: what layers have beside their tensors."""
    heat = dict.fromkeys(working, WORKING)
    reads: dict[str, float] = {}
    for layer in program.layers:
        if layer.is_view:
            continue
        for value in layer.inputs:
            reads[value.name] = reads.get(value.name, 0) + _reads(layer, value.info.elements)
    found: dict[str, float] = {}
    for name, block in owner.items():
        found[block] = max(found.get(block, 0), heat.get(name, 1 + reads.get(name, 0)))
    return found


def _reads(layer: Layer, elements: int) -> float:
    """Of each element of an input, about: a window's, for each window that it lies under."""
    channels = layer.outputs[0].info.shape[-1:] or (1,)
    products = layer.macs / channels[0] if layer.op in _EACH_FOR_ALL_CHANNELS else layer.macs
    return max(1.0, products / max(1, elements))
