"""Models on boards, tested by pytest: the plugin that is installed with uaccel. See docs/testing.md.

The classes are loaded when they are first asked for: pytest loads the plugin in every run, of whatever project.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uaccel.testing.outcome import Outcome
    from uaccel.testing.under_test import BoardUnderTest

__all__ = ["BoardUnderTest", "Outcome"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'uaccel.testing' has no attribute {name!r}")
    from uaccel.testing import under_test

    return getattr(under_test, name)
