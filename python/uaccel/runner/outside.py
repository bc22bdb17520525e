"""Finds layers that write outside of their tensors, by one more run on this computer.

The memory plan that ships hides such a write wherever it meets bytes that nobody needs. So the same layers run with
every tensor in a place of its own, with bytes between them (:func:`~uaccel.lower.placement.place_apart`), and all
memory is compared around each layer (``outside.c``). Without optimisation, compiling and running takes 0.1 to 0.3
seconds of a processor.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from uaccel.codegen.generate import Generated, generate
from uaccel.codegen.options import EmitOptions
from uaccel.codegen.state import FIELD
from uaccel.errors import InternalError
from uaccel.lower.placement import Placement, place_apart
from uaccel.lower.program import Layer, Program
from uaccel.model import Array
from uaccel.pipeline import Compiled
from uaccel.util.files import data_dir

DRIVER: Final = Path(__file__).with_name("outside.c")
MEMORIES: Final = ("arena", "state")
WORK: Final = 20_000_000  # Multiply-accumulates of all runs: so many take some 0.1 seconds.
SECONDS: Final = 600
OUTSIDE: Final = 3  # Exit status of the driver.


def written_outside(compiled: Compiled, samples: Sequence[Sequence[Array]]) -> str:
    """Says which layer writes outside of its tensors; empty if none does, or where that cannot be tried: the model
    needs a device, or gets its input by rows. At least two samples run, more as far as that takes no time."""
    program = compiled.program
    if program.devices or program.fed is not None or shutil.which("cc") is None:
        return ""
    placement = place_apart(program)
    generated = generate(program, placement, EmitOptions(workspace_io=True, constants=compiled.options.constants))
    work = max(1, sum(layer.macs for layer in program.layers))
    runs = [samples[i % len(samples)] for i in range(max(2, min(len(samples), WORK // work)))]
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        firmware = _built(generated, placement, Path(folder))
        done = _run(firmware, runs) if firmware is not None else ""
    return _told(program, placement, *map(int, done.split())) if done else ""


def _run(firmware: Path, runs: Sequence[Sequence[Array]]) -> str:
    """What the driver says; empty if nothing is wrong."""
    sent = b"".join(np.ascontiguousarray(value).tobytes() for values in runs for value in values)
    done = subprocess.run([firmware, str(len(runs))], input=sent, capture_output=True, timeout=SECONDS, check=False)
    if done.returncode not in (0, OUTSIDE):
        raise InternalError(f"the run with tensors apart ended with status {done.returncode}")
    return done.stdout.decode()


def _built(generated: Generated, placement: Placement, folder: Path) -> Path | None:
    """The program, compiled without optimisation; None where a driver needs options that only its project knows."""
    files = generated.sources | generated.private_headers | generated.public_headers | generated.firmware_headers
    for name, text in (files | {"outside_case.h": _case(generated, placement)}).items():
        (folder / Path(name).name).write_text(text)
    for name, data in generated.binaries.items():
        (folder / name).write_bytes(data)
    sources = [DRIVER, *(folder / name for name in generated.sources if name != f"{generated.names.prefix}.c")]
    folders = [folder, data_dir("firmware") / "include"]
    for engine in generated.program.engines:
        sources += [path for _, path in engine.files if path.suffix in (".c", ".cc", ".cpp")]
        folders += sorted({path.parent for _, path in engine.files if path.suffix == ".h"})
    words = ["cc", "-O0", "-w", *(f"-I{each}" for each in folders), *map(str, sources), "-o", str(folder / "run")]
    plus = ["-lstdc++"] if any(source.suffix in (".cc", ".cpp") for source in sources) else []
    done = subprocess.run([*words, "-lm", *plus], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0 and generated.program.engines:
        return None
    if done.returncode != 0:
        raise InternalError(f"tensors apart do not compile: {(done.stderr.strip() or 'no reason').splitlines()[0]}")
    return folder / "run"


def _case(generated: Generated, placement: Placement) -> str:
    """What the driver knows of a model."""
    names, program = generated.names, generated.program
    own = [(layer.index, *one) for layer in program.layers for one in _own(layer, placement)]
    rows = [f"{{{', '.join(map(str, row))}}}" for row in own]
    places = [(placement.places[value.name], value.info.size) for value in program.inputs]
    inputs = [f"{{{place.offset}, {size}}}" for place, size in places]
    state = bool(program.state)
    memories, sizes = [names.workspace, *([FIELD] if state else [])], [placement.arena, placement.state]
    return "\n".join(
        [
            f'#include "{names.prefix}.c"',
            f"#define WRITTEN {', '.join([*rows, '{-1, 0, 0, 0}'])}",
            f"#define INPUTS {', '.join([*inputs, '{0, 0}'])}",
            f"#define MEMORIES {', '.join(memories)}",
            f"#define SIZES {', '.join(map(str, sizes[: len(memories)]))}",
            f"#define RUN {names.prefix}_run",
            f"#define RESET() {f'{names.prefix}_reset()' if state else '((void)0)'}",
            "",
        ]
    )


def _own(layer: Layer, placement: Placement) -> Iterator[tuple[int, int, int]]:
    """The memory, the offset and the bytes of all that a layer may write."""
    if layer.is_view:
        return
    for value in layer.outputs:
        place = placement.places[value.name]
        yield MEMORIES.index(place.kind), place.offset, value.info.size
    if layer.index in placement.scratch:
        yield 0, placement.scratch[layer.index].offset, layer.scratch


def _told(program: Program, placement: Placement, index: int, memory: int, at: int) -> str:
    """Names the layer, and of its tensors the one that lies nearest."""
    layer = program.layers[index]
    who = f'layer {index} "{layer.name}" ({layer.op}, {layer.engine})'
    if memory < 0:
        return f"{who} ends with signal {at} where tensors lie apart"
    names = [*(f'its output "{value.spec.name}"' for value in layer.outputs), "its scratch memory"]
    near = []
    for name, (where, offset, size) in zip(names, _own(layer, placement), strict=False):
        if where == memory:
            near.append((min(abs(at - offset), abs(at - offset - size)), at - offset, name, size))
    if not near:
        return f"{who} writes into the state, of which nothing is its own"
    _, place, name, size = min(near)
    return f"{who} writes byte {place} of {name}, which has {size}"
