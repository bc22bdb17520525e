"""Build hook: the wheel carries the folders beside python/ that uaccel reads at run time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# As uaccel.resources names them. One that the checkout does not have is left out.
DATA_FOLDERS = ("boards", "firmware", "project_template", "accelerators", "accelerator_template")


class DataFolders(BuildHookInterface):  # type: ignore[misc]  # hatchling is seen as Any
    """Maps ``boards/`` to ``uaccel/_data/boards/`` in the wheel, and so on."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it collects files; an editable install reads the checkout instead."""
        if version == "editable":
            return
        for name in DATA_FOLDERS:
            folder = Path(self.root) / name
            if folder.is_dir():
                build_data["force_include"][str(folder)] = f"uaccel/_data/{name}"
