"""Command streams for machines with queues: cutting layers into parts, planning on-chip memory, tokens, and time.

For accelerators with separate engines for loading, computing and storing, each with a queue of commands, that tell each
other by tokens what is done. Vendors say what a part of a layer needs and which commands compute it (:class:`Layer`);
``docs/npu.md`` shows the whole of it. What other machines with memories have as well is in :mod:`uaccel.machines`.
"""

from uaccel.machines.geometry import Box, Shape, Window
from uaccel.machines.machine import Dma, Memory
from uaccel.machines.timeline import ENGINES
from uaccel.memory import Block, plan
from uaccel.streams.bus import Bus, Outside
from uaccel.streams.code import packed
from uaccel.streams.command import Command, Tokens
from uaccel.streams.cost import ENERGY, LATENCY
from uaccel.streams.geometry import Placed, dense, inside
from uaccel.streams.layer import Compute, Layer, Part, Places
from uaccel.streams.listing import listing
from uaccel.streams.machine import Machine
from uaccel.streams.planner import Network, Planned, plan_network, why_not
from uaccel.streams.results import Results
from uaccel.streams.search import Effort
from uaccel.streams.unpacker import Unpacker
from uaccel.streams.words import WORD, Field, Format, halves, octets, pack, unpack

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
]
