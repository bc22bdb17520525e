"""Packs generated code and all that is known of it into an archive in microTVM's Model Library Format."""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections.abc import Mapping
from typing import Any, Final

from uaccel.board.accelerator_devices import FILE as DEVICE_BUILD
from uaccel.codegen.generate import Generated, facts, io_bytes
from uaccel.model import ImportedModel, TensorSpec, write_npz
from uaccel.util import incoming
from uaccel.util.files import ACCELERATORS, CODE, FIRST_VALUES

# Model Library Format, version 7: one tar with everything, the same bytes for the same model.

FORMAT_VERSION: Final = 7
CPU_DEVICE: Final = 1  # kDLCPU, the number of a CPU in DLPack.
# TVM's dictionary of parameters, empty: its magic number, a reserved word, and no names and no arrays. microTVM wrote
# the same; the constants are in the C.
NO_PARAMETERS: Final = struct.pack("<4Q", 0xF7E58D4F05049CB7, 0, 0, 0)
# The format wants a date; the same model must give the same bytes, so it is always this one.
NO_DATE: Final = "1970-01-01 00:00:00Z"


def archive(generated: Generated, told: Mapping[str, Any] | None = None) -> dict[str, bytes]:
    """The archive's files by path.

    They are sources, headers, the constants for numpy, the model as it was given, drivers with the models of their
    devices, and ``metadata.json``. That has the format's own keys, and the facts of uaccel with those that are ``told``
    under the key ``uaccel``.
    """
    program = generated.program
    texts = {f"{CODE}/src/{name}": text for name, text in (generated.sources | generated.private_headers).items()}
    headers = generated.public_headers | generated.firmware_headers
    texts |= {f"{CODE}/include/{name}": text for name, text in headers.items()}
    texts |= {f"templates/{name}": text for name, text in generated.description.items()}
    texts[f"src/{program.name}.relax"] = program.model.module.script(show_meta=False)
    files = {name: text.encode() for name, text in texts.items()}
    files |= {f"{CODE}/src/{name}": data for name, data in generated.binaries.items()}
    if not generated.binaries:
        parameters = io.BytesIO()
        write_npz(parameters, {array.symbol: array.data for array in generated.arrays})
        files[f"parameters/{program.name}.npz"] = parameters.getvalue()
    files[f"parameters/{program.name}.params"] = NO_PARAMETERS
    model = program.model.file
    given = {} if model is None else {f"src/{program.name}{model.suffix}": model.data}
    metadata = document(generated, told or {}, next(iter(given), None))
    if program.model.bound:
        files[FIRST_VALUES.format(program.name)] = _first_values(program.model)
    files["metadata.json"] = (json.dumps(metadata, indent=2) + "\n").encode()
    drivers = {
        f"{ACCELERATORS}/{engine.name}/{name}": incoming.read_bytes(path)
        for engine in program.engines
        for name, path in engine.files
    }
    built = {
        f"{ACCELERATORS}/{engine.name}/device/{DEVICE_BUILD}": engine.device_build.encode()
        for engine in program.engines
        if engine.device_build
    }
    return files | given | drivers | built


def _first_values(model: ImportedModel) -> bytes:
    """What bound inputs hold before the first inference, for those who compare firmware with the model's file."""
    stream = io.BytesIO()
    write_npz(stream, {entry.spec.name: entry.initial for entry in model.state[: len(model.bound)]})
    return stream.getvalue()


def document(generated: Generated, told: Mapping[str, Any], file: str | None = None) -> dict[str, Any]:
    """The content of ``metadata.json``. ``file`` is the model's path in the archive."""
    name = generated.program.name
    module = {
        "model_name": name,
        "export_datetime": NO_DATE,
        "memory": _memory(generated),
        "target": ["c -keys=cpu", *(engine.name for engine in generated.program.engines)],
        "executors": ["aot"],
        "style": "full-model",
    }
    own = facts(generated)
    given = generated.program.model.file
    own["model"] |= {"file": file, "file_sha256": None if given is None else hashlib.sha256(given.data).hexdigest()}
    return {"version": FORMAT_VERSION, "modules": {name: module}, "uaccel": {**own, **told}}


def _memory(generated: Generated) -> dict[str, Any]:
    program = generated.program
    main = {
        "device": CPU_DEVICE,
        "workspace_size_bytes": generated.placement.arena,
        "constants_size_bytes": generated.weight_bytes,
        "io_size_bytes": io_bytes(program, generated.options),
        "inputs": _sizes(program.signature.inputs),
        "outputs": _sizes(program.signature.outputs),
    }
    functions = [
        {
            "function_name": f"layer_{layer.name}",
            "workspace": [{"device": CPU_DEVICE, "workspace_size_bytes": layer.scratch}],
        }
        for layer in program.layers
        if not layer.is_view
    ]
    return {"functions": {"main": [main], "operator_functions": functions}}


def _sizes(specs: tuple[TensorSpec, ...]) -> dict[str, Any]:
    return {spec.name: {"size": spec.info.size, "dtype": spec.info.dtype} for spec in specs}
