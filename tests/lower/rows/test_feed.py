"""An input that comes by rows gives the same outputs, whatever the pieces, and too few or too many rows are told."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from lower.rows.rows import by_groups, random_chain, two_inputs
from models import layers
from models.network import Network
from models.seeded import Seeded
from support.device.hostlib import Array, compile_c, write_sources
from support.models.networks import OWN
from support.oracle.exactness import assert_same
from support.oracle.oracle import Tflm, random_inputs
from support.oracle.sanitized import SANITIZE
from uaccel.board import load_board
from uaccel.codegen.options import EmitOptions
from uaccel.errors import ModelError
from uaccel.lower.rows.layer import RowGroup
from uaccel.lower.rows.schedule import Chains
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import run_compiled

DRIVER = Path(__file__).with_name("feed_driver.c")


def _compiled(data: bytes, *, feed: bool = False) -> Compiled:
    with tempfile.TemporaryDirectory(prefix="uaccel-test-") as folder:
        path = Path(folder) / "model.tflite"
        path.write_bytes(data)
        return compile_model(path, board="host", options=EmitOptions(workspace_io=True, feed=feed))


def _adapter(compiled: Compiled, runs: int) -> str:
    names, signature = compiled.generated.names, compiled.model.signature
    writes = [
        f"    fwrite(outputs.{member}, 1, {spec.info.size}, stdout);\n"
        for member, spec in zip(names.outputs, signature.outputs, strict=True)
    ]
    return (
        f'#include "{names.header}"\n#define ROWS {names.macro}_FEED_ROWS\n'
        f"#define ROW_SIZE {names.macro}_FEED_ROW_SIZE\n"
        f"#define RUNS {runs}\n#define FEED {names.prefix}_feed\n#define RUN {names.prefix}_run\n"
        f"#define MISSING {names.macro}_ROWS_MISSING\n#define TOO_MANY {names.macro}_TOO_MANY_ROWS\n"
        f"static void write_outputs(void)\n{{\n    const struct {names.prefix}_outputs outputs = "
        f"{names.prefix}_map_outputs();\n{''.join(writes)}}}\n"
    )


def _outputs(compiled: Compiled, images: list[Array]) -> list[list[Array]]:
    with tempfile.TemporaryDirectory(prefix="uaccel-test-") as name:
        folder = Path(name)
        sources = write_sources(compiled, folder)
        (folder / "feed_under_test.h").write_text(_adapter(compiled, len(images)))
        compile_c(folder, [*sources, DRIVER], folder / "program", flags=(*SANITIZE, "-O1"))
        sent = b"".join(image.tobytes() for image in images)
        done = subprocess.run([folder / "program"], input=sent, capture_output=True, timeout=100, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    raw, found = done.stdout, []
    for _ in images:
        values = []
        for spec in compiled.model.signature.outputs:
            values.append(np.frombuffer(raw[: spec.info.size], spec.info.dtype).reshape(spec.info.shape))
            raw = raw[spec.info.size :]
        found.append(values)
    return found


def _assert_exact(data: bytes, compiled: Compiled) -> None:
    images = [values[0] for values in random_inputs(data, 3, 4)]
    for image, outputs in zip(images, _outputs(compiled, images), strict=True):
        for i, (got, wanted) in enumerate(zip(outputs, Tflm(data).run([image]), strict=True)):
            assert_same(got, wanted.reshape(got.shape), f"output {i} of rows that were handed over")


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(12))
def test_random_chains_are_exact(seed: int) -> None:
    data = random_chain(seed)
    compiled = _compiled(data)
    chains = Chains(compiled.program)
    last = max(last for last in range(len(compiled.program.layers)) if chains.of(0, last, compiled.program.inputs[0]))
    _assert_exact(data, by_groups(compiled, [RowGroup(0, last, seed % 3 + 1)], feed=True))


def test_residual_network_by_rows() -> None:
    data = (OWN / "residual.tflite").read_bytes()
    compiled = _compiled(data, feed=True)
    assert "image" not in compiled.placement.places
    (header,) = compiled.generated.public_headers.values()
    assert "void *image;" not in header
    assert "#define TVMGEN_MODEL_FEED_ROWS 16\n#define TVMGEN_MODEL_FEED_ROW_SIZE 48\n" in header
    _assert_exact(data, compiled)


@pytest.mark.parametrize("workspace_io", [True, False])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["last", "first"])
def test_one_of_two_inputs_is_fed(order: tuple[int, int], workspace_io: bool, tmp_path: Path) -> None:
    """The other one is held, and read behind the rows: through the session, which sends both in their order."""
    data, options = two_inputs(order), EmitOptions(workspace_io=workspace_io, feed=True)
    path = tmp_path / "model.tflite"
    path.write_bytes(data)
    compiled = compile_model(path, board="host", options=options)
    assert [value.spec.name for value in compiled.program.held] == ["offset"]
    (header,) = compiled.generated.public_headers.values()
    assert '/* Rows of "image": int8 [1,24,24,3]' in header
    samples = random_inputs(data, 5, 3)
    run = run_compiled(compiled, load_board("host"), samples, tmp_path / "project", lambda step: None).run
    for values, (got,) in zip(samples, run.outputs, strict=True):
        (wanted,) = Tflm(data).run(values)
        assert_same(got, wanted.reshape(got.shape), "the output of two inputs")


def test_inputs_that_meet_at_once_are_refused() -> None:
    """Rows come when the other input may not be there yet."""
    seeded, net = Seeded(9), Network("uaccel met")
    one, other = (net.input(name, seeded.inputs((8, 8, 3), 3)) for name in ("one", "other"))
    net.output(layers.conv2d(net, layers.add(net, one, other), *seeded.conv(3, (3, 3), 3)))
    with pytest.raises(ModelError) as refused:
        _compiled(net.build(), feed=True)
    assert str(refused.value) == (
        '--feed: none of the inputs "one", "other" of model can come by rows, because the first layer does not read it '
        "by rows or others read it as a whole; leave --feed away"
    )


def test_input_that_is_no_image_is_refused() -> None:
    with pytest.raises(ModelError) as refused:
        _compiled((OWN / "stream.tflite").read_bytes(), feed=True)
    assert str(refused.value) == (
        '--feed: input "frame" of model cannot come by rows, because the first layer does not read it by rows or '
        "others read it as a whole; leave --feed away"
    )
