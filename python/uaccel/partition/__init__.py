"""Who computes what: accelerators claim, the user's wishes and costs decide, claims become regions of the module."""

from uaccel.partition.partition import Partitioned, partition
from uaccel.partition.report import Decision
from uaccel.partition.rewrite import EngineCall
from uaccel.partition.wishes import CPU, Subgraph, Wishes, read_wishes

__all__ = ["CPU", "Decision", "EngineCall", "Partitioned", "Subgraph", "Wishes", "partition", "read_wishes"]
