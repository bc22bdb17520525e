"""``compile --dump``: everything that a stage made, and regions that are loaded again as they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from support.models.partitioned import accelerator, chain, compile_on, operation, whole
from uaccel.accelerator import Constant, Input, Lowered, Output, Region, Scratch, library_call
from uaccel.errors import UaccelError
from uaccel.ops.kernel import Definition
from uaccel.pipeline import Compiled
from uaccel.report.dump import dump_files, load_region, write_dump


def lower(region: Region) -> Lowered:
    packed = np.arange(6, dtype=np.int16).reshape(2, 3)
    calls = (
        library_call("tiny_place", Input(0), Scratch(4), 7, -0.5),
        library_call("tiny_play", Constant("stream", packed), Scratch(), Output(0)),
    )
    source = Definition("helper", "static int helper;\n", ("stdint.h", "tiny.h"))
    return Lowered(calls, 8, source, {"commands.json": '{"é": 1}\n', "commands.bin": b"\x00\xff"})


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_on(
        chain("exp", "tanh", "sin"), [accelerator("a", operation("tanh", lower=lower)), whole("b", "cos")]
    )


def test_what_is_written(compiled: Compiled, tmp_path: Path) -> None:
    write_dump(compiled, tmp_path / "new" / "dump")
    write_dump(compiled, tmp_path / "new" / "dump")
    found = {str(path.relative_to(tmp_path / "new/dump")) for path in tmp_path.rglob("*") if path.is_file()}
    region = {"region.json", "constants.npz", "source.c", "commands.json", "commands.bin"}
    assert found == {
        *("0_import.relax", "1_partition.relax", "2_layouts.relax", "partition.json", "plan.json"),
        *(f"regions/tanh_1/{name}" for name in region),
    }
    partition = json.loads((tmp_path / "new/dump/partition.json").read_text())
    assert [(row["name"], row["engine"]) for row in partition] == [("exp_0", "cpu"), ("tanh_1", "a"), ("sin_2", "cpu")]
    plan = json.loads((tmp_path / "new/dump/plan.json").read_text())
    assert plan["arena"] >= plan["lower_bound"] > 0
    assert {block["name"] for block in plan["blocks"]} >= {"exp_0"}
    assert plan["overlaps"] == [], "of floats nothing says how far behind it writes"
    assert "a_tanh_1" in (tmp_path / "new/dump/1_partition.relax").read_text()
    assert dump_files(compiled) == dump_files(compiled)


def test_a_region_is_loaded_as_it_was(compiled: Compiled, tmp_path: Path) -> None:
    write_dump(compiled, tmp_path)
    layer = compiled.program.layers[1]
    loaded = load_region(tmp_path / "regions" / layer.name)
    assert (loaded.scratch, loaded.source, dict(loaded.artefacts)) == (8, layer.definition, dict(layer.artefacts))
    for made, wanted in zip(loaded.calls, layer.kernel.calls, strict=True):
        assert (made.function, made.checked) == (wanted.function, True)
        for one, other in zip(made.arguments, wanted.arguments, strict=True):
            if isinstance(other, Constant):
                assert isinstance(one, Constant)
                assert (one.role, one.data.dtype) == (other.role, other.data.dtype)
                np.testing.assert_array_equal(one.data, other.data)
            else:
                assert one == other
    described = json.loads((tmp_path / "regions/tanh_1/region.json").read_text())
    assert described["covers"] == [{"name": "tanh_1", "op": "tanh", "macs": 0}]
    assert [entry["shape"] for entry in described["inputs"]] == [[2, 3]]


@pytest.mark.parametrize("file", ["region.json", "constants.npz", "source.c", "commands.bin"])
@pytest.mark.parametrize("content", [None, b"", b"[5]"])
def test_a_region_that_is_damaged(file: str, content: bytes | None, compiled: Compiled, tmp_path: Path) -> None:
    write_dump(compiled, tmp_path)
    folder = tmp_path / "regions" / "tanh_1"
    (folder / file).unlink()
    if content is not None:
        (folder / file).write_bytes(content)
    if content is not None and file in ("source.c", "commands.bin"):
        load_region(folder)  # whatever it says is the vendor's affair
        return
    with pytest.raises(UaccelError, match=f"^{folder} holds no region as 'uaccel compile --dump' writes it: "):
        load_region(folder)


def test_a_folder_that_cannot_be_made(compiled: Compiled, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UaccelError, match=r"^--dump .*/file cannot be made: .*; name another folder$"):
        write_dump(compiled, tmp_path / "file")
