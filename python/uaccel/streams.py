"""Command streams for machines with queues: cutting layers into parts, planning on-chip memory, tokens, and time.

For accelerators with separate engines for loading, computing and storing, each with a queue of commands, that tell each
other by tokens what is done. Vendors say what a part of a layer needs and which commands compute it (:class:`Layer`);
``docs/reference/npu.md`` shows the whole of it. What other machines with memories have as well is in
:mod:`uaccel.accelerator.machine`.
"""

from uaccel.accelerator.machine import ENGINES, Box, Dma, Memory, Shape
from uaccel.accelerator.machine import SlidingWindow as Window
from uaccel.accelerator.streams.commands import WORD, Field, Format, halves, octets, pack, unpack
from uaccel.accelerator.streams.emitter import Effort
from uaccel.accelerator.streams.machine import (
    Bus,
    Command,
    Compute,
    Layer,
    Machine,
    Outside,
    Part,
    Placed,
    Places,
    Results,
    Tokens,
    Unpacker,
    dense,
    inside,
    packed,
)
from uaccel.accelerator.streams.planner import Network, Planned, cycles_alone, listing, plan_network, why_not
from uaccel.accelerator.streams.timeline import ENERGY, LATENCY
from uaccel.memory import Block, plan
from uaccel.ops.windows import window_of

__all__ = [
    "ENERGY",
    "ENGINES",
    "LATENCY",
    "WORD",
    "Block",
    "Box",
    "Bus",
    "Command",
    "Compute",
    "Dma",
    "Effort",
    "Field",
    "Format",
    "Layer",
    "Machine",
    "Memory",
    "Network",
    "Outside",
    "Part",
    "Placed",
    "Places",
    "Planned",
    "Results",
    "Shape",
    "Tokens",
    "Unpacker",
    "Window",
    "cycles_alone",
    "dense",
    "halves",
    "inside",
    "listing",
    "octets",
    "pack",
    "packed",
    "plan",
    "plan_network",
    "unpack",
    "why_not",
    "window_of",
]
