"""Plugins for QEMU, which are sources of ours: built at first use for the QEMU that is there, and kept."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from uaccel.basics.device_build import CXX, HEADERS
from uaccel.cache import cache_folder
from uaccel.errors import ToolError
from uaccel.resources import data_dir
from uaccel.toolchain import FoundProgram, find_program
from uaccel.toolchain.children import run

SECOND_INTERFACE: Final = (9, 0)
"""The version of QEMU that dropped the first plugin interface."""
_FLAGS: Final = ("-std=c99", "-O2", "-fPIC", "-shared", "-fvisibility=hidden")
_THUMB_BIT: Final = 1


@dataclass(frozen=True)
class PluginSource:
    """``includes`` are folders of headers; ``generated`` are further sources, as text by file name."""

    name: str
    about: str
    """For messages: "the counting plugin"."""
    sources: Sequence[Path]
    includes: Sequence[Path] = ()
    generated: Mapping[str, str] = field(default_factory=dict)
    remedy: str = ""
    """Where QEMU takes no plugins: what to say of that beyond it."""
    flags: Sequence[str] = ()
    libraries: Sequence[str] = ()

    @property
    def options(self) -> list[str]:
        """Of the compiler; C++ beside C rules out a standard for C alone."""
        mixed = any(path.suffix in CXX for path in self.sources)
        return [*(flag for flag in _FLAGS if not (mixed and flag.startswith("-std="))), *self.flags]

    @property
    def linked(self) -> list[str]:
        return [*self.libraries, *(["-lstdc++"] if any(path.suffix in CXX for path in self.sources) else [])]


def ports_folder(name: str) -> Path:
    """A folder of ``firmware/ports``."""
    return data_dir("firmware") / "ports" / name


def build_plugin(plugin: PluginSource, qemu: FoundProgram) -> Path:
    """The plugin, built at first use; :class:`ToolError` where this QEMU takes none or no compiler is there."""
    usage = run([*qemu.command, "-help"])
    if "\n-plugin " not in usage.stdout:
        raise ToolError(f"{qemu.path} was built without support for plugins{plugin.remedy}")
    interface = 2 if qemu.version >= SECOND_INTERFACE else 1
    return build_library(plugin, f"{plugin.name}-{interface}", [f"-DUACCEL_QEMU_PLUGIN_API={interface}"])


def build_library(plugin: PluginSource, name: str, flags: Sequence[str] = ()) -> Path:
    """The same for whoever opens it, built at first use."""
    compiler = find_program("C compiler")
    fingerprint = _fingerprint(plugin, repr((compiler.command, compiler.version, plugin.options, plugin.linked)))
    target = cache_folder() / f"{name}-{fingerprint[:16]}.so"
    if not target.is_file():
        includes = [f"-I{folder}" for folder in plugin.includes]
        _build([*compiler.command, *plugin.options, *flags, *includes], plugin, target)
    return target


def plugin_words(plugin: Path, options: Mapping[str, int | str]) -> list[str]:
    """For QEMU's command line."""
    words = [str(plugin), *(f"{name}={_text(value)}" for name, value in options.items())]
    return ["-plugin", ",".join(word.replace(",", ",,") for word in words)]


def code_address(symbol: int) -> int:
    """Of a function's first instruction, whose symbol may carry Thumb's bit."""
    return symbol & ~_THUMB_BIT


def _text(value: int | str) -> str:
    return f"{value:#x}" if isinstance(value, int) else value


def _fingerprint(plugin: PluginSource, how: str) -> str:
    digest = hashlib.sha256(how.encode())
    for path in [*plugin.sources, *_headers(plugin.includes)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    for name, text in plugin.generated.items():
        digest.update(name.encode() + b"\0" + text.encode() + b"\0")
    return digest.hexdigest()


def _headers(folders: Iterable[Path]) -> list[Path]:
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in HEADERS]


def _build(command: list[str], plugin: PluginSource, target: Path) -> None:
    """Under a name of its own first: another process may do the same."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder) / target.name
            sources = [str(path) for path in plugin.sources]
            for name, text in plugin.generated.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
                sources.append(str(Path(folder) / name))
            done = run([*command, "-o", str(made), *sources, *plugin.linked])
            if done.returncode != 0:
                raise ToolError(f"building {plugin.about} failed ({command[0]}): {_reason(done.stdout)}")
            made.replace(target)
    except OSError as error:
        raise ToolError(
            f"cannot write to {target.parent}: {error.strerror}; set UACCEL_CACHE to another folder"
        ) from error


def _reason(words: str) -> str:
    """The first line that tells what is wrong, and not where."""
    lines = words.strip().splitlines() or ["no message"]
    told = (line for line in lines if " error: " in line or "undefined reference" in line)
    return next(told, lines[0])
