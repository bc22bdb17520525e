"""What people see fits the screen: no name cut short, no line broken inside a word."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from support.generated import compiled
from support.networks import Network, each_network
from uaccel.cli.tables import show_layers, show_memory, show_outputs
from uaccel.report import compile_report

WIDTHS = pytest.mark.parametrize("width", [80, 100])


def screen(width: int) -> Console:
    return Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False)


def shown(console: Console) -> list[str]:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@each_network
@WIDTHS
def test_layers_and_memory_fit(network: Network, width: int) -> None:
    report = compile_report(compiled(network.path))
    console = screen(width)
    show_layers(console, report)
    show_memory(console, report)
    lines = shown(console)
    assert max(map(len, lines)) <= width
    words = set(re.findall(r"[^\s,]+", "\n".join(lines)))
    for layer in report["layers"]:
        assert layer["name"] in words
        kernels = re.findall(r"uaccel_(\w+)", layer["reason"])
        assert set(kernels) <= words, f"{layer['name']}: {layer['reason']}"
    assert not any("…" in word for word in words)


def layer(name: str, engine: str, reason: str, outputs: list[list[int]]) -> dict[str, Any]:
    return {"name": name, "engine": engine, "reason": reason, "outputs": outputs, "macs": 1_234_567}


def test_several_engines_have_a_column_and_warnings_a_line() -> None:
    console = screen(80)
    layers = [
        layer("conv_2d_0", "npu", "3x3 with stride 1: pattern conv3x3", [[1, 8, 8, 4]]),
        layer("split_1", "cpu", "CPU kernel uaccel_copy (portable)", [[1, 4], [1, 4]]),
        layer("exp_2", "cpu", "CPU kernel uaccel_exp, uaccel_copy (arm_dsp)", [[]]),
    ]
    show_layers(console, {"layers": layers, "warnings": ["operator 2 is computed in float " + "and " * 20 + "slowly"]})
    assert [line.rstrip() for line in shown(console)] == [
        "",
        "  Layer      Output         MACs  Engine  How",
        " " + "─" * 76,
        "  conv_2d_0  1x8x8x4   1,234,567  npu     3x3 with stride 1: pattern conv3x3",
        "  split_1    2 of 1x4  1,234,567  cpu     copy",
        "  exp_2      scalar    1,234,567  cpu     exp, copy (arm_dsp)",
        "",
        "  Layers    3, 3,703,701 multiply-accumulates",
        "  Warning   operator 2 is computed in float and and and and and and and and and",
        "            and and and and and and and and and and and slowly",
    ]


def test_memory_and_outputs_go_on_below_indented() -> None:
    console = screen(60)
    ram = {"arena": 12345, "arena_lower_bound": 12345, "io": 678, "static": 0, "stack": 2048, "total": 15071}
    show_memory(console, {"ram": ram, "flash": {"weights": 1000, "code": None, "total": None}})
    outputs = {
        "probabilities": {"shape": [1, 20], "dtype": "int8", "data": list(range(-20, 0))},
        "sum": {"shape": [], "dtype": "float32", "data": [1.2054740190505981]},
    }
    show_outputs(console, outputs)
    assert [line.rstrip() for line in shown(console)] == [
        "  RAM       arena 12,345 (lower bound 12,345) + io 678 +",
        "            static 0 + stack 2,048 = 15,071 bytes",
        "  Flash     weights 1,000 bytes",
        "  Output    probabilities (int8 1x20): -20, -19, -18, -17,",
        "            -16, -15, -14, -13, -12, -11, -10, -9, ...",
        "  Output    sum (float32 scalar): 1.20547",
    ]
