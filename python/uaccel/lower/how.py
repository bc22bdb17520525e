"""What decides how a layer is computed, where there are several ways."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from uaccel.variants import PORTABLE, Estimated, Selector, Target


@dataclass(frozen=True)
class How:
    """The CPU that kernels are for, and who picks among those that it can run."""

    target: Target = PORTABLE
    selector: Selector = field(default_factory=Estimated)

    @classmethod
    def on(cls, target: Target) -> How:
        """By what was measured of other layers, on this CPU or one like it."""
        return cls(target, Estimated.on(target))


ANYHOW: Final = How()
"""Kernels for any CPU."""
