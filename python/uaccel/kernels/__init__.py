"""Holds the kernels for CPU extensions, a module a family, and chooses among them; mirrors firmware/kernels.

A kernel is offered for a call only where it gives the operator's result to the last bit. Importing a family's module
registers its offers, each with its rank (`offers`); `choice` picks one of them for each layer.
"""

import importlib
import pkgutil

from uaccel.kernels.choice import (
    Choice,
    Estimated,
    Option,
    RankedSelector,
    Records,
    RecordsSelector,
    Selector,
    Turn,
    Work,
    kernel_options,
    pick,
    read_records,
    site_words,
    write_records,
)
from uaccel.kernels.registry import PORTABLE, Target, candidates, offers

__all__ = [
    "PORTABLE",
    "Choice",
    "Estimated",
    "Option",
    "RankedSelector",
    "Records",
    "RecordsSelector",
    "Selector",
    "Target",
    "Turn",
    "Work",
    "candidates",
    "kernel_options",
    "offers",
    "pick",
    "read_records",
    "site_words",
    "write_records",
]

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
