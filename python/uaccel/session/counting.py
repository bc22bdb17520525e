"""Exact instruction counts under QEMU: a plugin of ours, and its options."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from uaccel.project.elf import symbols
from uaccel.session.plugins import PluginSource, build_plugin, code_address, plugin_words, ports_folder
from uaccel.toolchain import FoundProgram


class Blocks(NamedTuple):
    """Where the plugin tells which instructions were executed: to ``file``, at the first ``marks`` readings."""

    file: Path
    marks: int


def plugin_for(qemu: FoundProgram) -> Path:
    """The plugin, built at first use; :class:`ToolError` where this QEMU takes none or no compiler is there."""
    folder = ports_folder("qemu_plugin")
    return build_plugin(PluginSource("count", "the counting plugin", [folder / "count.c"], [folder]), qemu)


def plugin_options(plugin: Path, firmware: Path, blocks: Blocks | None = None) -> list[str]:
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
    more: dict[str, int | str] = {} if blocks is None else {"blocks": str(blocks.file), "marks": blocks.marks}
    return plugin_words(plugin, values | {"function": code_address(values["function"])} | more)
