"""Folders of accelerators as their designers write them, as small as can be, and wrong in whatever way a test wants."""

from __future__ import annotations

from pathlib import Path

HEAD = """from uaccel.accelerator import (
    ANY, Accelerator, Constant, Input, Instruction, Lowered, Operation, Output, Region, Scratch, library_call, pattern,
)

def run(region):
    return library_call("tiny_run", Input(0), Output(0))

"""
FIELDS = {
    "name": '"tiny"',
    "description": '"tanh and nothing else"',
    "operations": '[Operation("tanh", "relax.tanh", run)]',
    "headers": '["tiny.h"]',
}
HEADER = """#include <stdint.h>
int32_t TVMDeviceTinyActivate(void *device);
int32_t TVMDeviceTinyOpen(void *device);
int32_t TVMDeviceTinyClose(void *device);
int32_t TVMDeviceTinyDeactivate(void *device);
int32_t tiny_run(const void *from, void *to);
"""


def description(body: str = "", **fields: str) -> str:
    """``accelerator.py``: ``body`` stands before the description, whose ``fields`` are Python; empty: absent."""
    stated = FIELDS | fields
    return HEAD + body + f"\nACCELERATOR = Accelerator({', '.join(f'{k}={v}' for k, v in stated.items() if v)})\n"


def vendor_folder(folder: Path, text: str | None = None, *, driver: bool = True, device: bool = True) -> Path:
    """A folder that loads, unless ``text`` or a part that is left out has it otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "accelerator.py").write_text(description() if text is None else text)
    for there, part in ((driver, "driver"), (device, "device")):
        if there:
            (folder / part).mkdir(exist_ok=True)
            (folder / part / f"tiny_{part}.c").write_text("extern int tiny;\n")
            (folder / part / "tiny.h").write_text(HEADER)
    return folder
