"""What a section of a page is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Section:
    """``template`` lies in ``templates/``. ``missing`` says why there is nothing to show."""

    id: str
    title: str
    template: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)
    missing: str = ""


DETAILS = "run the model with 'uaccel run MODEL --details --json', or with '--report FILE'"
"""What to do where a stored run lacks something."""
