"""The Verilog of an ``rtl/`` folder: what lies there, or what its generator writes, kept by content."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from uaccel.cache import Key, cache_of_user, folder_digest
from uaccel.errors import AcceleratorError, ToolError
from uaccel.rtl.description import Rtl
from uaccel.rtl.messages import reason
from uaccel.toolchain.children import run
from uaccel.toolchain.python_packages import PythonPackage, require

KIND: Final = "verilog"


def sources_of(rtl: Rtl, name: str, folder: Path, progress: Callable[[str], None]) -> list[Path]:
    """Of accelerator ``name``; what a generator writes goes below ``folder``."""
    if not rtl.generate:
        return _found(rtl, rtl.folder)
    packages = [PythonPackage(text, "", f"the RTL of {name}") for text in rtl.packages]
    key = Key(KIND).add("rtl", [name, *map(folder_digest, rtl.folders)]).add("python", sys.version)
    cache = cache_of_user()
    entry = cache.find(key) if cache is not None else None
    if entry is not None:
        for file in entry.manifest["files"]:
            shutil.copy(entry.path(file), folder / file)
        entry.close()
        return _found(rtl, folder)
    for package in packages:
        require(package)
    progress(f"generate the RTL of {name}")
    copy = folder / "rtl"
    for one in rtl.folders:
        shutil.copytree(one, copy, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    _generate(rtl, name, copy)
    made = _found(rtl, copy)
    if cache is not None and all(path.parent == copy for path in made):
        kept = cache.add(key, {path.name: path for path in made}, f"Verilog of {name}")
        if kept is not None:
            kept.close()
    return made


def _generate(rtl: Rtl, name: str, folder: Path) -> None:
    command: Sequence[str] = [sys.executable if word == "python" else word for word in rtl.generate]
    done = run(command, cwd=folder)
    if done.returncode != 0:
        raise ToolError(f"the RTL of {name} in {rtl.folder}: the generator failed: {reason(done.stdout)}")


def _found(rtl: Rtl, folder: Path) -> list[Path]:
    found = [path for pattern in rtl.sources for path in sorted(folder.glob(pattern))]
    if not found:
        raise AcceleratorError(
            f"{rtl.folder}: no file is any of {', '.join(rtl.sources)}; name the Verilog in 'sources'"
        )
    return found
