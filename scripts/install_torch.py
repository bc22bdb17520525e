"""Install PyTorch's build for CPUs, for models from PyTorch and their tests: ``make setup-torch``.

What PyPI has for Linux brings gigabytes of CUDA along, so that one is never taken here: the build for CPUs comes from
an index that pip is configured with, or from PyTorch's own. The exit status is 1 where neither gives it.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

from uaccel.build.doctor import CPU_TORCH

CONSTRAINTS = Path(__file__).parent / "locked" / "torch.txt"


def main() -> int:
    if importlib.util.find_spec("torch") is not None and importlib.util.find_spec("torchao") is not None:
        return 0
    version = pinned_version()
    print(f"setup: installing PyTorch {version} for CPUs (750 MB on disk)", flush=True)
    if install(f"torch=={version}+cpu") or install(f"torch=={version}", "--index-url", CPU_TORCH):
        return 0
    print(f"setup: PyTorch's build for CPUs is not to be had here; by hand: pip install torch --index-url {CPU_TORCH}")
    return 1


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
    sys.exit(main())
