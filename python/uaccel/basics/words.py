"""Words that reports and archives share: readers of either compare them."""

from __future__ import annotations

from typing import Final

CPU: Final = "cpu"
"""The engine that computes what no accelerator does."""
BOUNDED: Final = "layer by layer, outputs over what is read of their inputs"
"""The way to compute that an arena's lower bound is about; another one may take less."""
BOUNDED_ONCE: Final = "layer by layer, outputs beside their inputs"
"""That of archives that say nothing of it."""
BENCHMARK_HEADER: Final = "uaccel_mlperf_tiny.h"
"""In a project's ``board``: its firmware speaks the benchmark's protocol, and serves no session."""
