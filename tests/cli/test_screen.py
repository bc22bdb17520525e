"""What people see fits the screen: no name cut short, no line broken inside a word."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from support.device.generated import compiled
from support.models.networks import Network, each_network
from uaccel.cli.evaluate import show_evaluation
from uaccel.cli.explain import part_of
from uaccel.cli.tables import _seconds, show_latency, show_layers, show_memory, show_outputs
from uaccel.report.compile_json import compile_report

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
    show_layers(console, report, every=True)
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
        "  Layer      Output         MACs  Engine  Function",
        " " + "─" * 76,
        "  conv_2d_0  1x8x8x4   1,234,567  npu     3x3 with stride 1: pattern conv3x3",
        "  split_1    2 of 1x4  1,234,567  cpu     copy",
        "  exp_2      scalar    1,234,567  cpu     exp, copy (arm_dsp)",
        "",
        "  Layers    1 on npu, 2 on cpu, 3,703,701 multiply-accumulates (33.3% on npu)",
        "  Warning   operator 2 is computed in float and and and and and and and and and",
        "            and and and and and and and and and and and slowly",
    ]


def test_an_engine_without_products_has_no_share_of_them() -> None:
    console = screen(100)
    layers = [layer("add_0", "adder", "it adds", [[]]) | {"macs": 0}, layer("exp_1", "cpu", "it computes", [[]])]
    show_layers(console, {"layers": layers, "warnings": []})
    assert shown(console)[-1].rstrip() == "  Layers    1 on adder, 1 on cpu, 1,234,567 multiply-accumulates"


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("adder", "1 of 2 layers, 25.0 % of the CPU's work"),
        ("cpu", "1 of 2 layers, 75.0 % of the CPU's work, 8 multiply-accumulates (100.0 %)"),
    ],
)
def test_explain_tells_each_engines_share(engine: str, words: str) -> None:
    rows: list[dict[str, Any]] = [
        {"engine": "adder", "macs": 0, "cpu_cycles": 10},
        {"engine": "cpu", "macs": 8, "cpu_cycles": 30},
    ]
    macs = sum(row["macs"] for row in rows if row["engine"] == engine)
    assert part_of(rows, engine, {"layers": 1, "macs": macs}) == words


@pytest.mark.parametrize(("auc", "words"), [(None, "unknown: no samples of some class"), (0.5, "0.5000")])
def test_an_evaluation_says_why_there_is_no_area_and_what_it_wrote(auc: float | None, words: str) -> None:
    console = screen(80)
    report = {
        "samples": 2,
        "board": "host",
        "resumed": 0,
        "kept": "a.jsonl",
        "top1": 0.5,
        "correct": 1,
        "auc": auc,
    }
    show_evaluation(console, report)
    assert shown(console) == [
        "  Samples   2 on board host",
        "  Top-1     50.00 %, 1 are right",
        f"  AUC       {words}",
        "  Kept      a.jsonl: the same command goes on from there",
    ]


def test_memory_and_outputs_go_on_below_indented() -> None:
    console = screen(60)
    ram = {"arena": 12345, "arena_lower_bound": 12345, "io": 678, "static": 0, "stack": 2048, "total": 15071}
    show_memory(console, {"workspace_io": False, "ram": ram, "flash": {"weights": 1000, "code": None, "total": None}})
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


@pytest.mark.parametrize(
    ("width", "measured", "head"),
    [
        (90, {"instructions": 12_345_678}, "Layer Output MACs Instructions Function"),
        (80, {"instructions": 12_345_678}, "Layer Output Instructions Function"),
        (60, {"instructions": 12_345_678}, "Layer Instructions Function"),
        (80, {"instructions": None, "seconds": 0.0125}, "Layer Output Time Function"),
        (60, {"instructions": None, "seconds": 0.0125}, "Layer Time Function"),
        (60, {}, "Layer Output Function"),
    ],
)
def test_what_layers_took(width: int, measured: dict[str, Any], head: str) -> None:
    """On a narrow screen the columns that matter least give way, and no word is broken."""
    console = screen(width)
    reason = "CPU kernel uaccel_depthwise_conv2d_s8 (portable)"
    report = {"layers": [layer("depthwise_conv_2d_13", "cpu", reason, [[1, 16, 16, 128]]) | measured], "warnings": []}
    show_layers(console, report | measured)
    lines = shown(console)
    assert lines[1].split() == head.split()
    took = {"Instructions": "12,345,678", "Time": "12.5 ms"}
    wanted = ["depthwise_conv_2d_13", *(words for title, words in took.items() if title in head)]
    assert [word for word in wanted if word in lines[3]] == wanted
    assert "depthwise_conv2d_s8" in "\n".join(lines)
    assert max(map(len, lines)) <= width


def test_of_many_layers_those_are_shown_that_take_most() -> None:
    console = screen(100)
    reason = "CPU kernel uaccel_copy (portable)"
    layers = [layer(f"l{n}", "cpu", reason, [[1]]) | {"macs": 100 * n} for n in range(20)]
    show_layers(console, {"layers": layers, "warnings": []})
    lines = shown(console)
    assert re.findall(r"^  l(\d+) ", "\n".join(lines), re.MULTILINE) == [str(n) for n in range(19, 9, -1)]
    others = "  Others    10 more layers, 23.7% of the multiply-accumulates; --layers shows them"
    assert others in map(str.rstrip, lines)


LATENCY = {"cycles": 15_698, "ms": 0.628, "hz": 25_000_000, "estimated": True, "missing": None, "cpu_alone": 3_924_500}
PARTS = {"cpu": 841, "start": 1357, "copies": 706, "waiting": 12_794}
NPU = layer("conv_2d_0", "npu", "driver functions npu_play", [[1]])
BY = {"cycles_estimated_by": {"core": "cortex-m4"}}


@pytest.mark.parametrize(
    ("report", "wanted"),
    [
        (
            {"latency": LATENCY | {"parts": PARTS}, "instructions": 1_300, "accelerator_cycles": 13_500} | BY,
            [
                "Latency about 628 µs: 15,698 cycles at 25 MHz, estimated for cortex-m4",
                "cpu 841 (5%), start of npu 1,357 (9%), npu moving data 706 (4%), npu computing 12,794 (82%)",
                "about 250 times as fast as the CPU alone, by estimate 3,924,500 cycles",
                "1,300 instructions, 13,500 cycles of npu",
            ],
        ),
        (
            {"latency": LATENCY | {"parts": None, "cpu_alone": None, "estimated": False}, "waited": {"code": 9}},
            ["Latency 628 µs: 15,698 cycles at 25 MHz", "the core waited 9 for code"],
        ),
        (
            {"latency": dict.fromkeys(LATENCY) | {"parts": None, "ms": 1.2, "estimated": False}, "seconds": 0.0012},
            ["Latency 1.2 ms, the fastest inference"],
        ),
        (
            {"latency": dict.fromkeys(LATENCY) | {"parts": None, "missing": "no clock"}, "instructions": 7},
            ["Latency not known: no clock", "7 instructions"],
        ),
        ({"latency": dict.fromkeys(LATENCY) | {"parts": None, "missing": "no clock"}}, []),
        ({}, []),
    ],
)
def test_latency(report: dict[str, Any], wanted: list[str]) -> None:
    console = screen(110)
    show_latency(console, {"layers": [NPU], **report})
    assert [" ".join(line.split()) for line in shown(console)] == wanted


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2.5e-7, "0.25 µs"), (9.996e-4, "1,000 µs"), (0.0125, "12.5 ms"), (1.5, "1.5 s"), (1234.5, "1,234 s")],
)
def test_seconds(seconds: float, words: str) -> None:
    assert _seconds(seconds) == words
