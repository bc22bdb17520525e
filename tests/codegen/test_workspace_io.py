"""Inputs and outputs in the workspace: the interface, the text about it, and that every run computes the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from codegen.shapes import SHAPES
from support.device.generated import Unpacked, archive, cc, compiled, run
from support.device.hostlib import STRICT
from support.models.networks import OWN, Network, each_network
from support.oracle.oracle import Array, Tflm, random_inputs
from support.oracle.sanitized import SANITIZE
from uaccel.util.files import data_dir
from uaccel.util.text import BOUNDED

HERE = Path(__file__).parent
BRANCHES, GESTURE = (OWN / f"{name}.tflite" for name in ("branches", "gesture"))
RUNS = 3
each_pool = pytest.mark.parametrize("pool", ["", "sram"])
each_division = pytest.mark.parametrize("pool", ["", "sram", "fast=1K slow", "one=200 two=300 three"])


def joined(arrays: list[Array]) -> bytes:
    return b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)


@pytest.mark.slow
@each_pool
def test_an_application_for_microtvms_interface_links_and_runs(pool: str, tmp_path: Path) -> None:
    """Many samples, one after the other: each is right whatever the one before left in the workspace."""
    tree = Unpacked(tmp_path, archive(BRANCHES, workspace_pool=pool, workspace_io=True))
    program = tree.program(HERE / "app_workspace_io.c", "-O1", *SANITIZE, *(["-DPOOL"] if pool else []))
    data = BRANCHES.read_bytes()
    reference, samples = Tflm(data), random_inputs(data, 4, 8)
    sent = b"".join(joined(values) for values in samples)
    assert run(program, sent) == b"".join(joined(reference.run(values)) for values in samples)


def check(tree: Unpacked, data: bytes) -> None:
    """Through the description, under sanitizers."""
    sources = [HERE / "app_describe.c", *tree.sources, *tree.descriptions]
    include = [tree.include, data_dir("firmware") / "include"]
    cc(*sources, "-O1", *SANITIZE, "-lm", include=include, output=tree.folder / "program")
    samples = random_inputs(data, 6, RUNS)
    got = run(tree.folder / "program", bytes([RUNS]) + b"".join(joined(values) for values in samples))
    reference = Tflm(data)
    assert got == b"".join(joined(reference.run(values)) for values in samples)


@pytest.mark.sample(4)
@each_division
@each_network
def test_networks_compute_the_references_bytes(network: Network, pool: str, tmp_path: Path) -> None:
    if network.float_outputs:
        pytest.skip("float outputs are the reference's within rounding only")
    check(Unpacked(tmp_path, archive(network.path, workspace_pool=pool, workspace_io=True)), network.path.read_bytes())


@pytest.mark.covering
@each_division
@pytest.mark.parametrize("make", SHAPES, ids=lambda make: make.__name__)
def test_models_of_unusual_shape_do(make: Callable[[], bytes], pool: str, tmp_path: Path) -> None:
    model = tmp_path / "model.tflite"
    model.write_bytes(make())
    check(Unpacked(tmp_path / "tree", archive(model, workspace_pool=pool, workspace_io=True)), model.read_bytes())


INTERFACE = """
/* Where the inputs lie. Write all of them before every run: it uses their bytes for other tensors. And read
 * the outputs of the run before first: inputs may lie where those were.{null} */
struct tvmgen_gesture_inputs tvmgen_gesture_map_inputs({pools});

/* Where the outputs lie: after a run, until inputs are written for the next one. */
struct tvmgen_gesture_outputs tvmgen_gesture_map_outputs({pools});

/* The linker's name is tvmgen_gesture_run_c. Older generators gave tvmgen_gesture_run other arguments,
 * packed ones: an application that was made for those does not link. */
#define tvmgen_gesture_run tvmgen_gesture_run_c

/* One inference, from any task or interrupt{alone}.
 * Returns TVMGEN_GESTURE_OK or one of the errors above.{found}
 * The compiler decides how much stack it takes: 'uaccel run' measures it, -fstack-usage tells it. */
int32_t tvmgen_gesture_run({run});
"""
OF_POOL = "struct tvmgen_gesture_workspace_pools *workspace_pools"
TEXTS = {
    "": INTERFACE.format(null="", pools="void", alone=", one at a time", found="", run="void"),
    "sram": INTERFACE.format(
        null=" Members are NULL where the pool is.",
        pools=OF_POOL,
        alone="",
        found=" NULL is found before anything is written.",
        run=f"\n    {OF_POOL}",
    ),
}


@each_pool
def test_the_header_says_what_a_user_must_know(pool: str) -> None:
    model = compiled(GESTURE, workspace_pool=pool, workspace_io=True)
    text = model.generated.public_headers["tvmgen_gesture.h"]
    assert TEXTS[pool] in text
    assert "/* What goes in: where it lies in the workspace, aligned as its type. */" in text
    assert ("extern uint8_t tvmgen_gesture_workspace[];" in text) == (pool == "")
    assert "--workspace-io" in text


def test_the_metadata_counts_nothing_twice() -> None:
    inside, apart = (
        json.loads(archive(GESTURE, workspace_io=workspace_io)["metadata.json"]) for workspace_io in (True, False)
    )
    assert (inside["uaccel"]["workspace_io"], apart["uaccel"]["workspace_io"]) == (True, False)
    sizes = [
        document["modules"]["gesture"]["memory"]["functions"]["main"][0]["io_size_bytes"]
        for document in (inside, apart)
    ]
    assert sizes == [0, 96 + 6]
    assert inside["uaccel"]["arena"] == {"bytes": 320, "lower_bound": 272, "bounds": BOUNDED}


@each_network
def test_the_arena_grows_by_less_than_inputs_and_outputs_take(network: Network) -> None:
    inside = compiled(network.path, workspace_io=True)
    apart = compiled(network.path)
    specs = (*inside.program.signature.inputs, *inside.program.signature.outputs)
    assert inside.placement.plan.optimal
    assert inside.placement.arena - apart.placement.arena < sum(spec.info.size for spec in specs)


@pytest.mark.parametrize(("language", "standard"), [("c", "c99"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++20")])
@each_pool
def test_the_public_header_is_c_and_cpp(language: str, standard: str, pool: str, tmp_path: Path) -> None:
    tree = Unpacked(tmp_path, archive(GESTURE, workspace_pool=pool, workspace_io=True))
    user = tmp_path / "user.c"
    user.write_text('#include "tvmgen_gesture.h"\n#include "tvmgen_gesture.h"\n')
    flags = (f"-std={standard}", "-x", language, "-fsyntax-only")
    cc(*flags, user, include=[tree.include], warnings=[flag for flag in STRICT if flag != "-std=c99"])
