"""Writes the files of ``compile --dump DIR``: the module after each stage, the plan, every region with artefacts."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from uaccel.accelerator import Lowered, library_call
from uaccel.errors import UaccelError
from uaccel.lower.accelerator_layer import OWN_FILES
from uaccel.lower.program import Layer
from uaccel.model import c_identifier, read_npz, write_npz
from uaccel.ops.kernel import KINDS, Constant, Definition, Input, KernelCall, Output, Scratch
from uaccel.pipeline import Compiled
from uaccel.report.compile_json import plan_report, values_report
from uaccel.util import incoming
from uaccel.util.files import parse_json, write_atomically

REGION, CONSTANTS, SOURCE = OWN_FILES


def write_dump(compiled: Compiled, folder: Path) -> None:
    """Writes a dump into a folder, which is made; files of an earlier dump are overwritten."""
    for name, content in dump_files(compiled).items():
        target = folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UaccelError(f"--dump {folder} cannot be made: {error.strerror}; name another folder") from error
        _write(target, content if isinstance(content, bytes) else content.encode())


def _write(path: Path, data: bytes) -> None:
    write_atomically(path, lambda stream: stream.write(data), "--dump")


def dump_files(compiled: Compiled) -> dict[str, str | bytes]:
    """The files of a dump by path in its folder; stages are numbered in their order."""
    files: dict[str, str | bytes] = {}
    for number, (stage, module) in enumerate(compiled.stages.items()):
        files[f"{number}_{c_identifier(stage)}.relax"] = module.script(show_meta=False)
    files["partition.json"] = _json([decision.to_json() for decision in compiled.partitioned.decisions])
    files["plan.json"] = _json(plan_report(compiled) | {"values": values_report(compiled)})
    for layer in compiled.program.layers:
        if layer.on_accelerator:
            files |= {f"regions/{layer.name}/{name}": content for name, content in save_region(layer).items()}
    return files


def save_region(layer: Layer) -> dict[str, str | bytes]:
    """The files of one accelerated layer, from which ``load_region`` restores what the accelerator made of it."""
    constants: dict[str, NDArray[Any]] = {}
    artefacts = dict(sorted(layer.artefacts.items()))
    calls = []
    for number, call in enumerate(layer.kernel.calls):
        arguments = []
        for position, argument in enumerate(call.arguments):
            if isinstance(argument, Constant):
                constants[f"call{number}_{position}"] = argument.data
            arguments.append(_argument(argument))
        calls.append({"function": call.function, "arguments": arguments})
    stream = io.BytesIO()
    write_npz(stream, constants)
    document = {
        "layer": layer.name,
        "engine": layer.engine,
        "reason": layer.reason,
        "covers": [{"name": c.name, "op": c.op, "macs": c.macs} for c in layer.covers],
        "inputs": [{"name": v.name, **v.spec.to_json()} for v in layer.inputs],
        "outputs": [{"name": v.name, **v.spec.to_json()} for v in layer.outputs],
        "scratch": layer.kernel.scratch,
        "calls": calls,
        "artefacts": {name: "text" if isinstance(content, str) else "bytes" for name, content in artefacts.items()},
    }
    files: dict[str, str | bytes] = {REGION: _json(document), CONSTANTS: stream.getvalue()}
    if layer.definition is not None:
        document["source"] = {"name": layer.definition.name, "headers": list(layer.definition.headers)}
        files |= {REGION: _json(document), SOURCE: layer.definition.source}
    return files | artefacts


def load_region(folder: Path) -> Lowered:
    """Reads what an accelerator made of a layer from a dump: calls, constants, source, artefacts."""
    try:
        document = parse_json(incoming.read_text(folder / REGION))
        constants = read_npz(folder / CONSTANTS)
        calls = tuple(_loaded_call(number, call, constants) for number, call in enumerate(document["calls"]))
        artefacts = {name: _content(folder / name, kind) for name, kind in document["artefacts"].items()}
        return Lowered(calls, document["scratch"], _source(folder, document.get("source")), artefacts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UaccelError(f"{folder} holds no region as 'uaccel compile --dump' writes it: {error!r}") from error


def _loaded_call(number: int, call: Any, constants: Any) -> KernelCall:
    arguments = (_loaded(entry, constants, f"call{number}_{i}") for i, entry in enumerate(call["arguments"]))
    return library_call(call["function"], *arguments)


def _source(folder: Path, stated: Any) -> Definition | None:
    if stated is None:
        return None
    return Definition(stated["name"], incoming.read_text(folder / SOURCE), tuple(stated["headers"]))


def _content(file: Path, kind: str) -> str | bytes:
    return incoming.read_text(file) if kind == "text" else incoming.read_bytes(file)


def _loaded(argument: Any, constants: Any, key: str) -> Any:
    if isinstance(argument, (int, float)):
        return argument
    if "constant" in argument:
        return Constant(argument["constant"], constants[key])
    if "scratch" in argument:
        return Scratch(argument["offset"])
    kind, where = ("input", Input) if "input" in argument else ("output", Output)
    return where(argument[kind], argument["offset"])


def _json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


def _argument(argument: Any) -> Any:
    if isinstance(argument, (int, float)):
        return argument
    if isinstance(argument, Constant):
        return {"constant": argument.role, "dtype": str(argument.data.dtype), "shape": list(argument.data.shape)}
    return {KINDS[type(argument)]: getattr(argument, "index", 0), "offset": argument.offset}
