"""docs/reference/api.md is what the docstrings of the public names say, and what it says is so."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import uaccel
from support.models.networks import OWN
from support.run.command import call_in
from support.run.scripts import script_of


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return script_of("scripts/api_page.py")


def test_the_page_is_up_to_date(script: ModuleType) -> None:
    assert script.PAGE.read_text(encoding="utf-8") == script.page(), "write it anew: python scripts/api_page.py"


def test_every_public_name_says_what_it_is(script: ModuleType) -> None:
    for name in script.MODULES:
        module = import_module(name)
        assert module.__doc__
        for public in module.__all__:
            value = getattr(module, public)
            assert not callable(value) or (value.__doc__ or "").strip(), f"{name}.{public} has no docstring"


def test_compile_run_and_verify(tmp_path: Path) -> None:
    gesture = OWN / "gesture.tflite"
    compiled = uaccel.compile(gesture, "mps2_an386", output=tmp_path / "gesture.tar", name="waving")
    assert (tmp_path / "gesture.tar").stat().st_size > 10_000
    assert (compiled.board, compiled.program.name) == ("mps2_an386", "waving")
    uaccel.compile(gesture, "mps2_an386", output=f"{tmp_path}/folder/", name="waving")
    assert (tmp_path / "folder" / "metadata.json").is_file()
    done = uaccel.verify(gesture, accelerators=["matrix8"], samples=3, seed=1)
    assert done.verdict is not None
    assert (done.verdict["bit_exact"], done.verdict["samples"]) == (True, 3)
    assert done.accelerator_cycles > 0
    assert "conv_2d_0</td>" in compiled._repr_html_()
    assert "cycles of accelerators" in done._repr_html_()
    assert "verified: bit_exact True, samples 3" in done._repr_html_()
    names = [spec.name for spec in done.compiled.model.signature.inputs]
    (tensor,) = done.compiled.model.signature.inputs
    again = uaccel.run(gesture, inputs={names[0]: np.zeros((2, *tensor.info.shape[1:]), np.int8)})
    assert again.outputs["softmax_1"].shape == (2, 6)
    assert again.verdict is None


def test_a_written_archive_is_the_commands(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call = call_in(capfd)
    gesture, ours, theirs = OWN / "gesture.tflite", tmp_path / "ours.tar", tmp_path / "theirs.tar"
    uaccel.compile(gesture, "mps2_an386", output=ours)
    assert call("compile", gesture, "--board", "mps2_an386", "-o", theirs).status == 0
    assert ours.read_bytes() == theirs.read_bytes()
    with uaccel.ProjectServer() as template:
        template.generate_project(ours, tmp_path / "project")
    assert (tmp_path / "project" / "board" / "memory.ld").is_file()


def test_a_model_that_does_not_fit_is_warned_of(tmp_path: Path) -> None:
    text = uaccel.load_board("mps2_an385").file.read_text().replace('length = "4M"', 'length = "8K"', 1)
    (tmp_path / "tiny.toml").write_text(text)
    with pytest.warns(UserWarning, match="^model gesture does not fit on board tiny: its constants are "):
        uaccel.compile(OWN / "gesture.tflite", tmp_path / "tiny.toml", output=tmp_path / "tiny.tar")


def test_what_is_wrong_with_inputs_is_said() -> None:
    with pytest.raises(uaccel.UaccelError, match=r"holds .*; the model's inputs are"):
        uaccel.run(OWN / "gesture.tflite", inputs={"nonsense": np.zeros(3)})
    with pytest.raises(AttributeError, match="module 'uaccel' has no attribute 'nonsense'"):
        _ = uaccel.nonsense
