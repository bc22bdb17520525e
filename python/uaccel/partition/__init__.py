"""Decides who computes what: accelerators claim, constraints and costs decide, claims become regions of the module."""

from uaccel.partition.claims import Subgraph, Wishes, read_wishes
from uaccel.partition.partition import (
    Decision,
    Partitioned,
    PartitionRequest,
    divided,
    partition,
    preferred,
    question_of,
)
from uaccel.partition.regions import EngineCall

__all__ = [
    "Decision",
    "EngineCall",
    "PartitionRequest",
    "Partitioned",
    "Subgraph",
    "Wishes",
    "divided",
    "partition",
    "preferred",
    "question_of",
    "read_wishes",
]
