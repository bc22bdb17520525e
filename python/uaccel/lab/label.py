"""What a sweep is called in a history: the commit of the folder where its matrix file lies."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit_of(folder: Path) -> str:
    """Its first digits; empty where the folder is in no repository, or there is no git."""
    command = ["git", "-C", str(folder), "rev-parse", "--short=10", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
