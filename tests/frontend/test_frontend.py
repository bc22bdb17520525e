"""What all front ends share: the registry of formats, tables of converters, and the walk that names every problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.run.command import call_in
from uaccel.errors import InternalError, ModelError, need
from uaccel.frontend import FORMATS, SUFFIXES, import_model, quantising
from uaccel.frontend.checks import first_line, unsupported
from uaccel.frontend.converters import Converters, Walk, parameters_of
from uaccel.model import Origin, TensorInfo, TensorSpec
from uaccel.tvm_api import main_bindings, relax

SPEC = TensorSpec("x", TensorInfo((2,), "float32"))


@dataclass(kw_only=True)
class Chain(Walk[str]):
    """Operators of one operand each, by Relax's names."""

    value: Any = None
    stood_in: list[str] = field(default_factory=list)

    def convert(self, node: str) -> None:
        need(node != "nothing", "there is nothing to it")
        negative = self.block.emit(relax.op.negative(self.value), "lv")
        expr = getattr(relax.op, node)(negative) if node != "two lines" else two_lines()
        self.value = self.bind(expr, node, Origin(0, node, node), SPEC)

    def where(self, node: str) -> str:
        return f"node {node}"

    def stand_in(self, node: str) -> None:
        self.stood_in.append(node)
        self.value = self.block.stand_in((2,), "float32")

    def results(self) -> Sequence[Any]:
        return [self.value]


def two_lines() -> Any:
    raise TypeError("the first line.\nthe second")


def chain() -> Chain:
    return Chain(path=Path("m.file"))


def test_every_binding_has_an_origin() -> None:
    walk, parameters = chain(), parameters_of([SPEC])
    walk.value = parameters[0]
    module = walk.module(parameters, ["exp", "abs"])
    *names, _result = (var.name for var, _ in main_bindings(module)[1])
    assert [walk.origins[name].op for name in names] == ["exp", "exp", "abs", "abs"]
    assert walk.tensors == {"exp": SPEC, "abs": SPEC}


def test_one_error_names_every_node_that_cannot_be_converted() -> None:
    walk, parameters = chain(), parameters_of([SPEC])
    walk.value = parameters[0]
    with pytest.raises(ModelError) as error:
        walk.module(parameters, ["nothing", "abs", "two lines"])
    assert str(error.value) == (
        "cannot import m.file: 2 unsupported: node nothing: there is nothing to it; node two lines: the first line"
    )
    assert walk.stood_in == ["nothing", "two lines"]


def test_of_very_many_the_first_are_named() -> None:
    problems = [f"node {number}: {'x' * 991}" for number in range(1, 9)]
    said = str(unsupported("m.file", problems))
    assert said == f"cannot import m.file: 8 unsupported: {'; '.join(problems[:3])}; and 5 more"
    assert str(unsupported("m.file", ["y" * 9000])) == f"cannot import m.file: 1 unsupported: {'y' * 9000}"


def test_inputs_have_names_that_differ() -> None:
    assert [var.name for var in parameters_of([SPEC, SPEC, TensorSpec("a:0", SPEC.info)])] == ["x", "x_1", "a_0"]


def test_a_table_finds_by_name_and_condition() -> None:
    table: Converters[Any] = Converters("uaccel.frontend", when=lambda node: node > 0)
    table.converts("A")(lambda: "any above 0")
    table.converts("B", when=lambda node: node == 3)(lambda: "3")
    assert [table.find("A", node) is not None for node in (0, 1)] == [False, True]
    assert [table.find("B", node) is not None for node in (1, 3)] == [False, True]
    assert table.find("C", 1) is None
    assert table.names == {"A", "B"}
    with pytest.raises(InternalError, match=r"^uaccel\.frontend has two converters of A$"):
        table.converts("C", "A")(lambda: "another")


def test_a_library_is_quoted_without_what_a_terminal_obeys() -> None:
    assert first_line(ValueError("\n  bad \x1b[2J thing.\nmore")) == "bad ?[2J thing"
    assert first_line(KeyError()) == "KeyError"


def test_every_format_says_how_to_quantise() -> None:
    assert [quantising(known.name) for known in FORMATS] == [known.quantising for known in FORMATS]


@pytest.mark.parametrize("command", ["compile", "run", "explain"])
def test_help_names_every_format(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert SUFFIXES == ".tflite, .onnx, .pt2"
    assert f"({SUFFIXES})" in call_in(capfd)(command, "--help").out


OTHERS = {
    "m.keras": r"convert it: import tensorflow as tf; m = tf.keras.models.load_model\('m.keras'\); .*from_keras.*",
    "m.h5": r"convert it: import tensorflow as tf; m = tf.keras.models.load_model\('m.h5'\); open\('m.tflite', .*",
    "m.pte": r"it is compiled for ExecuTorch; export its program: torch.export.save\(.*, 'm.pt2'\)",
    "m.pth": r"export its program: torch.export.save\(torch.export.export\(model.eval\(\), inputs\), 'm.pt2'\)",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_formats_are_refused_with_what_converts_them(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"anything")
    words = rf"{name}: suffix '{path.suffix}' is not known; wanted .tflite, .onnx, .pt2; {OTHERS[name]}"
    with pytest.raises(ModelError, match=words):
        import_model(path)
