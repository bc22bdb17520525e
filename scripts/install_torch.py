"""Install PyTorch's build for CPUs, which ``make setup`` wants for models from PyTorch and for their tests.

What PyPI has for Linux brings gigabytes of CUDA along, so that one is never taken here: the build for CPUs comes from
an index that pip is configured with, or from PyTorch's own. Where neither gives it, all but PyTorch models works.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
INDEX = "https://download.pytorch.org/whl/cpu"


def main() -> None:
    if importlib.util.find_spec("torch") is not None:
        return
    version = pinned_version()
    print(f"setup: installing PyTorch {version} for CPUs")
    found = install(f"torch=={version}+cpu") or install(f"torch=={version}", "--index-url", INDEX)
    if not found:
        print(
            "setup: PyTorch's build for CPUs is not to be had here, so that .pt2 models cannot be read and their tests "
            f"are skipped; to add it: pip install torch=={version} torchao --extra-index-url {INDEX}"
        )


def pinned_version() -> str:
    match = re.search(r"^torch==(\S+)", CONSTRAINTS.read_text(), re.MULTILINE)
    if match is None:
        sys.exit(f"setup: {CONSTRAINTS.name} pins no version of torch")
    return match.group(1)


def install(torch: str, *options: str) -> bool:
    """Torch, then what reads quantised programs; both or nothing."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS), "--retries", "1"]
    done = subprocess.run([*pip, "--timeout", "20", *options, torch], capture_output=True)
    return done.returncode == 0 and subprocess.run([*pip, "torchao"], capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
