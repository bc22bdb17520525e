"""Who computes what: accelerators claim, the user's wishes and costs decide, claims become regions of the module."""

from uaccel.partition.partition import Partitioned, Question, divided, partition, preferred, question_of
from uaccel.partition.report import Decision
from uaccel.partition.rewrite import EngineCall
from uaccel.partition.wishes import Subgraph, Wishes, read_wishes

__all__ = [
    "Decision",
    "EngineCall",
    "Partitioned",
    "Question",
    "Subgraph",
    "Wishes",
    "divided",
    "partition",
    "preferred",
    "question_of",
    "read_wishes",
]
