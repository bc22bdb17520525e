"""The archive: Model Library Format, complete in itself, the same bytes for the same model."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tvm.runtime import load_param_dict

from support.device.generated import archive, cc, compiled
from support.models.networks import OWN, Network, each_network
from uaccel.accelerator import load_accelerators
from uaccel.board import load_board
from uaccel.build.project import archive_overlay
from uaccel.pipeline import compile_model
from uaccel.runner.compiled import archive_of
from uaccel.util.files import write_archive
from uaccel.util.text import BOUNDED

GESTURE = OWN / "gesture.tflite"
FOLDERS = {
    *("codegen", "codegen/host", "codegen/host/src", "codegen/host/lib", "codegen/host/include"),
    *("parameters", "src", "executor-config", "templates"),
}


MICROTVMS = ("constants_size_bytes", "device", "inputs", "io_size_bytes", "outputs", "workspace_size_bytes")
"""The keys of a model's memory, which microTVM's own tests compare as a whole."""
# Pythons before 3.11.4 have no filters.
STRICT_FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "gesture.tar"
    write_archive(path, archive(GESTURE))
    return path


def test_the_file_holds_what_was_generated_in_the_formats_folders(tar: Path) -> None:
    with tarfile.open(tar) as opened:
        members = {member.name.removeprefix("./"): member for member in opened.getmembers()}
        assert len(members) == len(opened.getmembers()), "a path stands there twice"
        contents = {name: opened.extractfile(member) for name, member in members.items() if member.isfile()}
        found = {name: stream.read() for name, stream in contents.items() if stream is not None}
    assert found == archive(GESTURE)
    assert {name for name, member in members.items() if member.isdir()} >= FOLDERS
    assert {str(Path(name).parent) for name in found} <= {".", *(n for n, m in members.items() if m.isdir())}


def test_entries_are_plain_and_safe_to_extract(tar: Path, tmp_path: Path) -> None:
    """Nobody's owner, no clock, no way out of the folder: Python's strictest filter takes it as it is."""
    with tarfile.open(tar) as opened:
        for member in opened.getmembers():
            assert member.isfile() or member.isdir()
            assert member.name.startswith("./")
            assert ".." not in Path(member.name).parts
            assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (0, 0, 0, "", "")
            assert member.mode == (0o755 if member.isdir() else 0o644)
        opened.extractall(tmp_path, **STRICT_FILTER)
    assert (tmp_path / "metadata.json").is_file()


def test_the_unpacked_archive_compiles_by_itself(tar: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "xf", tar, "-C", tmp_path], check=True)
    host = tmp_path / "codegen/host"
    for source in sorted((host / "src").glob("*.c")):
        cc(source, "-fsyntax-only", include=[host / "include"])


@each_network
def test_metadata_is_model_library_format_7(network: Network) -> None:
    """The keys that readers of the format look up, with their types."""
    model = compiled(network.path)
    document: dict[str, Any] = json.loads(archive(network.path)["metadata.json"])
    assert document["version"] == 7
    assert list(document["modules"]) == [model.program.name]
    module = document["modules"][model.program.name]
    assert module["model_name"] == model.program.name
    assert module["export_datetime"] == "1970-01-01 00:00:00Z"
    assert module["executors"] == ["aot"]
    assert module["style"] == "full-model"
    assert module["target"] == ["c -keys=cpu"]
    assert list(module) == ["model_name", "export_datetime", "memory", "target", "executors", "style"]
    (main,) = module["memory"]["functions"]["main"]
    assert sorted(main) == [*MICROTVMS]
    assert main["device"] == 1
    assert main["workspace_size_bytes"] == model.placement.arena
    assert main["constants_size_bytes"] == sum(array.data.nbytes for array in model.generated.arrays)
    signature = model.model.signature
    assert main["io_size_bytes"] == sum(spec.info.size for spec in (*signature.inputs, *signature.outputs))
    for key, specs in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        assert main[key] == {spec.name: {"size": spec.info.size, "dtype": spec.info.dtype} for spec in specs}
    source = model.generated.sources[f"{model.generated.names.prefix}.c"]
    for function in module["memory"]["functions"]["operator_functions"]:
        assert f"UACCEL_LAYER void {function['function_name']}(" in source
        ((workspace),) = function["workspace"]
        assert workspace["device"] == 1
        assert 0 <= workspace["workspace_size_bytes"] <= model.placement.arena


def test_metadata_names_the_accelerators_targets() -> None:
    engines = load_accelerators(("nuc_fpga", "matrix8"))
    model = compile_model(GESTURE, board="host", accelerators=engines)
    document = json.loads(archive_of(model)["metadata.json"])
    module = document["modules"]["gesture"]
    assert module["target"] == ["c -keys=cpu", *(engine.name for engine in model.program.engines)]
    assert len(module["target"]) > 1
    assert sorted(module["memory"]["functions"]["main"][0]) == [*MICROTVMS]
    devices = [array.data.nbytes for array in model.generated.arrays if array.for_device]
    assert document["uaccel"]["device_constants"] == sum(devices) > 0


def test_there_is_a_dictionary_of_parameters_as_tvmc_reads_it(tar: Path, tmp_path: Path) -> None:
    """What its import_package opens; microTVM's held nothing either, since the constants are in the C."""
    with tarfile.open(tar) as opened:
        opened.extractall(tmp_path, **STRICT_FILTER)
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    (name,) = metadata["modules"]
    assert metadata["modules"][name]["executors"] == ["aot"]
    assert dict(load_param_dict(bytearray((tmp_path / f"parameters/{name}.params").read_bytes()))) == {}


@each_network
def test_metadata_says_where_every_tensor_is(network: Network) -> None:
    model = compiled(network.path)
    own = json.loads(archive(network.path)["metadata.json"])["uaccel"]
    assert own["model"]["sha256"] == hashlib.sha256(network.path.read_bytes()).hexdigest()
    assert own["model"]["format"] == "tflite"
    bound = {"lower_bound": model.placement.plan.lower_bound, "bounds": BOUNDED}
    assert own["arena"] == {"bytes": model.placement.arena, **bound}
    assert [layer["name"] for layer in own["layers"]] == [layer.name for layer in model.program.layers]
    for stated, layer in zip(own["layers"], model.program.layers, strict=True):
        for output, value in zip(stated["outputs"], layer.outputs, strict=True):
            assert (output["tensor"], output["shape"]) == (value.spec.name, list(value.info.shape))
            assert output["memory"] in ("arena", "input", "output")
            if output["memory"] == "arena":
                assert 0 <= output["offset"] <= model.placement.arena - value.info.size


@each_network
def test_parameters_are_the_constants_for_numpy(network: Network) -> None:
    model = compiled(network.path)
    with np.load(io.BytesIO(archive(network.path)[f"parameters/{model.program.name}.npz"])) as stored:
        assert sorted(stored.files) == sorted(array.symbol for array in model.generated.arrays)
        for array in model.generated.arrays:
            np.testing.assert_array_equal(stored[array.symbol], array.data)


def compile_elsewhere(model: Path, folder: Path, seed: str, *options: str) -> bytes:
    """The archive that another process makes in another folder."""
    folder.mkdir()
    command = [sys.executable, "-m", "uaccel", "compile", str(model), "--board", "host", "-o", "made.tar", *options]
    environment = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC{seed}", "LC_ALL": "C"}
    subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return (folder / "made.tar").read_bytes()


@pytest.mark.slow
def test_every_process_makes_the_same_bytes(tmp_path: Path) -> None:
    model = OWN / "branches.tflite"
    first = compile_elsewhere(model, tmp_path / "a", "1")
    copy = tmp_path / "models" / "branches.tflite"
    copy.parent.mkdir()
    copy.write_bytes(model.read_bytes())
    assert compile_elsewhere(copy, tmp_path / "b", "2") == first
    files = archive(model)
    write_archive(tmp_path / "c.tar", files | archive_overlay(load_board("host"), files))
    assert (tmp_path / "c.tar").read_bytes() == first


@pytest.mark.long
@each_network
def test_every_network_repeats(network: Network, tmp_path: Path) -> None:
    assert compile_elsewhere(network.path, tmp_path / "a", "1") == compile_elsewhere(network.path, tmp_path / "b", "2")
