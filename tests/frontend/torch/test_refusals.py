"""Files that are no exported programs, and programs that cannot be compiled: one line that says what to do."""

from __future__ import annotations

import json
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.exported import Net, exported, random, save, settled, torch
from uaccel.errors import ModelError
from uaccel.frontend import import_model
from uaccel.frontend.torch.importer import import_torch
from uaccel.model import Shape
from uaccel.tvm_api.executor import Executor
from uaccel.util.files import quiet

WANTED = "give what torch.export.save(torch.export.export(model.eval(), inputs), path) writes"


def complaint(path: Path, **options: Any) -> str:
    with pytest.raises(ModelError) as caught:
        import_torch(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text.removeprefix(f"cannot import {path}: ").removeprefix(f"{path}").lstrip(": ")


def refused(
    folder: Path, compute: Callable[..., Any], *inputs: Any, parts: tuple[Any, ...] = (), **options: Any
) -> str:
    program = exported(Net(compute, *parts), inputs or [random(1, 4, 8, 8)], **options)
    return complaint(save(program, folder / "model.pt2"))


@pytest.fixture
def good(tmp_path: Path) -> Path:
    program = exported(Net(lambda x, part: part(x), torch.nn.Linear(4, 3)).eval(), [random(2, 4)])
    return save(program, tmp_path / "good.pt2")


class Evil:
    """What unpickling of would run code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path("/nonexistent/evil").touch, ())


def write_zip(path: Path, entries: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)


def torch_save(value: Any) -> Callable[[Path], None]:
    return lambda path: torch.save(value, path)


def script(path: Path) -> None:
    with quiet():
        torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), str(path))


OLDER = "is not an exported program of a current PyTorch but"
FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "empty": (lambda path: path.write_bytes(b""), f"is empty; {WANTED}"),
    "text": (
        lambda path: path.write_bytes(b"hello"),
        "is not an exported program but something that starts with b'hell'",
    ),
    "pickle": (lambda path: path.write_bytes(pickle.dumps(Evil())), "is not an exported program but a pickle"),
    "archive": (lambda path: write_zip(path, {"a/b": b""}), f"{OLDER} an archive without models/model.json"),
    "cut archive": (lambda path: path.write_bytes(b"PK\x03\x04 and no more"), "is damaged: File is not a zip file"),
    "state_dict": (
        torch_save({"a": torch.zeros(2)}),
        f"{OLDER} what torch.save writes, a state_dict or a pickled module",
    ),
    "torchscript": (script, f"{OLDER} a TorchScript module (torch.jit.save)"),
    "older": (
        lambda path: write_zip(path, {"version": b"8.1", "serialized_exported_program.json": b"{}"}),
        f"{OLDER} one of an older PyTorch, with pickled weights",
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_what_is_no_exported_program(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    make, text = FILES[kind]
    make(path)
    assert complaint(path) == f"{text.removesuffix(f'; {WANTED}')}; {WANTED}"


def rewritten(path: Path, change: Callable[[str, bytes], bytes]) -> Path:
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    write_zip(path, {name: change(name, data) for name, data in entries.items()})
    return path


def test_a_flipped_bit(good: Path) -> None:
    data = bytearray(good.read_bytes())
    with zipfile.ZipFile(good) as archive:
        weights = archive.read("good/data/weights/weight_0")
    data[data.index(weights)] ^= 1
    good.write_bytes(data)
    assert complaint(good).startswith("is damaged: the checksum of good/data/weights/weight_0 is wrong; ")


def test_a_program_that_makes_no_sense(good: Path) -> None:
    rewritten(good, lambda name, data: b"{}" if name.endswith("model.json") else data)
    assert complaint(good) == f"cannot be read: its program has no graph_module; {WANTED}"


@pytest.mark.parametrize("change", [{"use_pickle": True}, {"tensor_meta": None}, {"path_name": "custom_obj_0"}])
def test_no_weights_are_unpickled(change: dict[str, Any], good: Path) -> None:
    """They could hold any code."""

    def pickled(name: str, data: bytes) -> bytes:
        if not name.endswith("weights_config.json"):
            return data
        config = json.loads(data)
        for entry in config["config"].values():
            entry |= change
        return json.dumps(config).encode()

    rewritten(good, pickled)
    assert complaint(good) == (
        'weight "parts.0.weight" is pickled, which can hold any code and is not loaded; '
        "export the model with plain tensors as weights"
    )


def test_a_list_of_weights_that_makes_no_sense(good: Path) -> None:
    rewritten(good, lambda name, data: b"[]" if name.endswith("weights_config.json") else data)
    assert complaint(good) == f"cannot be read: its model_weights_config.json is no object; {WANTED}"


def dynamic(folder: Path) -> Path:
    dim = torch.export.Dim("batch", min=1, max=64)
    program = exported(torch.nn.Linear(4, 3), [random(2, 4)], dynamic_shapes={"input": {0: dim}})
    return save(program, folder / "dynamic.pt2")


def test_dynamic_shapes(tmp_path: Path) -> None:
    text = complaint(dynamic(tmp_path))
    symbol = text.partition("[")[2].partition(",")[0]
    assert text == (
        f'input "input" [{symbol},4] has the dynamic dimension 0 ("{symbol}"); firmware needs every extent fixed: '
        "export without dynamic_shapes, or add --input-shape input:1,4, or with the extent you want"
    )


def test_dynamic_shapes_are_fixed(tmp_path: Path) -> None:
    path = dynamic(tmp_path)
    model = import_torch(path, {"input": (3, 4)})
    assert [str(spec.info) for spec in (*model.signature.inputs, *model.signature.outputs)] == [
        "float32 [3,4]",
        "float32 [3,3]",
    ]
    value = random(3, 4)
    with quiet():
        wanted = torch.export.load(path).module()(value).detach()
    np.testing.assert_allclose(Executor(model.module).run([value.numpy()])[0], wanted, atol=1e-6)


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ({"y": (1, 4)}, 'has no input "y" for --input-shape; its inputs are: input'),
        ({"input": (4,)}, '--input-shape input:4 has 1 extents; input "input" is [SYMBOL,4]'),
        (
            {"input": (1, 5)},
            '--input-shape input:1,5 contradicts the file: dimension 1 of input "input" [SYMBOL,4] is fixed at 4',
        ),
        ({"input": (65, 4)}, 'dimension 0 of input "input" is 65; the program takes extents from 1 to 64'),
    ],
)
def test_shapes_that_do_not_fit(shapes: dict[str, Shape], text: str, tmp_path: Path) -> None:
    path = dynamic(tmp_path)
    symbol = complaint(path).partition("[")[2].partition(",")[0]
    assert complaint(path, input_shapes=shapes) == text.replace("SYMBOL", symbol)


def test_training_mode(tmp_path: Path) -> None:
    program = exported(torch.nn.BatchNorm2d(4), [random(2, 4, 3, 3)])
    assert complaint(save(program, tmp_path / "model.pt2")) == (
        "the program is in training, it changes running_mean, running_var, num_batches_tracked; "
        "call model.eval() before exporting"
    )
    dropping = exported(Net(lambda x: torch.nn.functional.dropout(x, 0.5, True)), [random(2, 4)])
    assert complaint(save(dropping, tmp_path / "model.pt2")) == (
        '1 unsupported: operator 0 aten.native_dropout.default ("dropout"): it draws random numbers; '
        "call model.eval() before exporting"
    )


def test_what_may_not_change(tmp_path: Path) -> None:
    def count(x: Any, part: Any) -> Any:
        part.running_mean += 1
        return x + part.running_mean

    assert refused(tmp_path, count, random(2, 4), parts=(settled(torch.nn.BatchNorm1d(4)),)) == (
        "the program is in training, it changes parts.0.running_mean; call model.eval() before exporting"
    )
    assert refused(tmp_path, lambda x: x.add_(1)) == (
        "the program changes its parameters or inputs (input x_0); keep what lasts in a buffer (register_buffer)"
    )


def test_every_unsupported_operator_is_named(tmp_path: Path) -> None:
    assert refused(tmp_path, lambda x: torch.lgamma(x) + torch.cummax(x, 1)[0]) == (
        '2 unsupported: operator 0 aten.lgamma.default ("lgamma"): there is no converter for this operator; '
        "rewrite the layer with supported operators; "
        'operator 1 aten.cummax.default ("cummax"): there is no converter for this operator; '
        "rewrite the layer with supported operators"
    )


F = torch.nn.functional
OPERATORS: dict[str, tuple[Callable[..., Any], str]] = {
    "divisor": (
        lambda x: F.avg_pool2d(x, 3, ceil_mode=True, divisor_override=3),
        'operator 0 aten.avg_pool2d.default ("avg_pool2d"): divisor_override with ceil_mode is not supported; '
        "leave one of them out",
    ),
    "anti-aliasing": (
        lambda x: F.interpolate(x, size=(3, 5), mode="bilinear", antialias=True),
        'operator 0 aten._upsample_bilinear2d_aa.default ("_upsample_bilinear2d_aa"): anti-aliasing is not supported; '
        "resize with antialias=False",
    ),
    "scale factor": (
        lambda x: F.interpolate(x, scale_factor=1.3, mode="bilinear"),
        'operator 0 aten.upsample_bilinear2d.vec ("upsample_bilinear2d"): scale_factor [1.3, 1.3] does not divide '
        "[10, 10] evenly; give the size [10, 10] instead",
    ),
    "distance": (
        lambda x: torch.cdist(x[0], x[0], p=3),
        'operator 2 aten._cdist_forward.default ("cdist"): p=3 is not supported; 1, 2 and infinity are',
    ),
    "type": (
        lambda x: x.bfloat16().float(),
        'operator 1 aten._to_copy.default ("to"): its result has type bfloat16, which cannot be compiled',
    ),
    "second result": (
        lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
        'operator 2 getitem ("getitem_1"): the program declares int64 [1,4,4,4], TVM\'s converter computes '
        "float32 [1,4,4,4]; rewrite the layer with supported operators",
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_what_would_be_computed_wrongly_is_refused(name: str, tmp_path: Path) -> None:
    compute, text = OPERATORS[name]
    assert refused(tmp_path, compute) == f"1 unsupported: {text}"


def test_a_shape_that_depends_on_data(tmp_path: Path) -> None:
    text = refused(tmp_path, lambda x: x[x > 0].sum())
    assert 'aten.index.Tensor ("index"): its result has the shape [u0], which depends on data; firmware needs' in text


def test_an_input_or_output_that_is_no_tensor(tmp_path: Path) -> None:
    assert refused(tmp_path, lambda x: (x + 1, 3)) == "output 1 is no tensor; return tensors only"
    assert refused(tmp_path, lambda x: x.float() + 1, torch.zeros(2, dtype=torch.complex64).real.bfloat16()) == (
        'input "x_0" has type bfloat16, which cannot be compiled'
    )


@pytest.mark.parametrize(("module", "wanted"), [("torch", "PyTorch")])
def test_pytorch_is_not_installed(module: str, wanted: str, good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert complaint(good).startswith("reading .pt2 files takes PyTorch, and importing it fails (")
    assert complaint(good).endswith(
        "); install its build for CPUs: pip install torch --index-url https://download.pytorch.org/whl/cpu "
        "&& pip install 'uaccel[torch]'"
    )


def test_the_format_goes_by_the_suffix(good: Path) -> None:
    assert import_model(good).source_format == "torch.export"
