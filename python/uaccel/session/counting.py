"""Exact instruction counts under QEMU: a plugin of ours, built for the QEMU that is there, and its options."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from uaccel.errors import ToolError
from uaccel.project.elf import symbols
from uaccel.resources import data_dir
from uaccel.toolchain import FoundProgram, find_program

SECOND_INTERFACE: Final = (9, 0)
"""The version of QEMU that dropped the first plugin interface."""
_FLAGS: Final = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
_THUMB_BIT: Final = 1


def cache_folder() -> Path:
    """Where what is built once is kept; a user's cache may be deleted at any time."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "uaccel"


def plugin_for(qemu: FoundProgram) -> Path:
    """The plugin, built at first use; :class:`ToolError` where this QEMU takes none or no compiler is there."""
    usage = subprocess.run([*qemu.command, "-help"], capture_output=True, text=True, check=False)
    if "\n-plugin " not in usage.stdout:
        raise ToolError(f"{qemu.path} was built without support for plugins")
    interface = 2 if qemu.version >= SECOND_INTERFACE else 1
    source = data_dir("firmware") / "ports" / "qemu_plugin" / "count.c"
    compiler = find_program("C compiler")
    fingerprint = hashlib.sha256(source.read_bytes() + repr((compiler.command, compiler.version, _FLAGS)).encode())
    target = cache_folder() / f"count-{interface}-{fingerprint.hexdigest()[:16]}.so"
    if not target.is_file():
        _build([*compiler.command, *_FLAGS, f"-DUACCEL_QEMU_PLUGIN_API={interface}"], source, target)
    return target


def plugin_options(plugin: Path, firmware: Path) -> list[str]:
    """For QEMU's command line; none where the firmware has not what the plugin looks for."""
    at = symbols(firmware)
    wanted = {
        "function": "uaccel_port_instructions",
        "window": "uaccel_count_window",
        "skip": "uaccel_uncounted_start",
        "until": "uaccel_uncounted_end",
    }
    if not all(symbol in at for symbol in wanted.values()):
        return []
    values = {option: at[symbol] for option, symbol in wanted.items()}
    values["function"] &= ~_THUMB_BIT
    options = ",".join(f"{option}={value:#x}" for option, value in values.items())
    return ["-plugin", f"{str(plugin).replace(',', ',,')},{options}"]


def _build(command: list[str], source: Path, target: Path) -> None:
    """Under a name of its own first: another process may do the same."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / target.name
            done = subprocess.run([*command, "-o", str(made), str(source)], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                lines = done.stderr.strip().splitlines() or ["no message"]
                raise ToolError(f"building the counting plugin failed ({command[0]}): {lines[0]}")
            made.replace(target)
    except OSError as error:
        raise ToolError(f"cannot write to {target.parent}: {error.strerror}; set XDG_CACHE_HOME elsewhere") from error
