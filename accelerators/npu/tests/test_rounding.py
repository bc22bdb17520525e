"""The rounding of the output stage and of additions in RTL is proven step by step, for all values that there can be."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

MISSING = [name for name in ("yosys",) if shutil.which(name) is None]
MISSING += [] if importlib.util.find_spec("amaranth") else ["amaranth"]
needs_tools = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
RTL = Path(__file__).resolve().parents[1] / "rtl"
MEANINGS = Path(__file__).with_name("rounding.v")
UNITS = """
import sys

sys.path.insert(0, sys.argv[1])
from amaranth.back import rtlil
from amaranth.hdl import Signal
from npu_rtl.addition import ADDITION, Adder
from npu_rtl.numbers import FINISH
from npu_rtl.output import Output

command, numbers, once = Signal(FINISH, name="command"), Signal(ADDITION, name="numbers"), Signal(name="once")
stage, adder = Output(0, command), Adder(0, numbers, once)
ports = [stage.accumulator, stage.bias, stage.multiplier, stage.shift, stage.byte, command.as_value()]
print(rtlil.convert(stage.module, name="output_stage", ports=ports, emit_src=False))
ports = [adder.first, adder.second, adder.byte, numbers.as_value(), once]
print(rtlil.convert(adder.module, name="addition", ports=ports, emit_src=False))
"""
REGISTERS = {
    "output_stage": (
        *("sum0", "factor0", "exponent0", "a_kept0", "b_kept0", "shift_kept0", "lost_kept0", "below_kept0", "product0"),
        *("shift_on0", "lost_on0", "below_on0", "rounded0", "down_kept0", "negative0", "scaled0", "byte0"),
    ),
    "addition": (
        *("factor1_0", "factor2_0", "product1_0", "product2_0", "exact_0", "term0_0", "term1_0", "real_0"),
        *("real_on_0", "output_factor_0", "output_product_0", "value_0", "sum_byte_0"),
    ),
}
STEPS: Mapping[str, Iterable[int]] = {
    "sums": [0],
    "factors": range(-31, 31),
    "single_factors": range(16),
    "products": [0],
    "high": range(-31, 31),
    "single_high": range(26),
    "halves_away": range(32),
    "halves_even": range(63),
    "grown": range(1, 42),
    "clamp": [0],
    "operands": range(61),
    "addition_products": [0],
    "scales": range(32),
    "raised": range(31),
    "exact_sums": range(1, 43),
    "once": range(1, 43),
    "addition_ends": [0],
}
"""The cases of each: all shifts that a command may have, and all lengths of what is rounded."""
QUICK = {"single_factors": [3], "high": [-5], "halves_away": [9], "halves_even": [9], "scales": [7], "once": [5]}


@dataclass(frozen=True)
class Planted:
    """In a file of the RTL, and the step and case whose proof must fail."""

    file: str
    right: str
    wrong: str
    step: str
    case: int = 0


BUGS = {
    "a bias is taken away": Planted("output", "self.accumulator + self.bias", "self.accumulator - self.bias", "sums"),
    "shifts by one are forgotten": Planted(
        "output", "Mux(shift > 0, shift.as", "Mux(shift > 1, shift.as", "factors", 1
    ),
    "2^24 has no rest": Planted("output", "(total >= -most)", "(total > -most)", "single_factors", 7),
    "a factor without its sign": Planted("output", "product.eq(a * b)", "product.eq(a * b[:32])", "products"),
    "halves downwards": Planted("output", "(product + (1 << 30)) >> 31", "(product + (1 << 30) - 1) >> 31", "high"),
    "half the product": Planted("output", "31 - shift - lost - cut", "32 - shift - lost - cut", "single_high", 9),
    "ties are not even": Planted("output", "(half & (~even | (rest != 0) | whole[0]))", "half", "halves_even", 3),
    "all below the half is a tie": Planted("output", "(rest != 0) | whole[0]", "whole[0]", "single_high", 25),
    "no shift by 31": Planted("output", "Mux(down > 31, 31, down)", "Mux(down > 30, 30, down)", "halves_away", 31),
    "2^31 is not too large": Planted("output", "far[31:] != 0", "far[32:] != 0", "grown", 8),
    "no zero point below 0": Planted("output", "c.zero_point.as_signed()", "c.zero_point", "clamp"),
    "few left shifts": Planted("addition", "n.left_shift[:6] +", "n.left_shift[:4] +", "operands", 20),
    "another's multiplier": Planted("addition", "* n.output_multiplier)", "* n.multiplier1)", "addition_products"),
    "no rounding": Planted("addition", "moved[32:] + moved[31]", "moved[32:]", "scales", 1),
    "a sum of 31 bits": Planted("addition", "(terms[0] + terms[1])[:32]", "(terms[0] + terms[1])[:31]", "raised"),
    "no half": Planted("addition", "sides[1][0] + half + tol", "sides[1][0] + tol", "exact_sums", 8),
    "a tolerance less one": Planted("addition", "(rest <= tolerance << 1)", "(rest < tolerance << 1)", "once", 3),
    "a zero point is taken away": Planted(
        "addition", "value + n.output_zero", "value - n.output_zero", "addition_ends"
    ),
}


def failure(rtl: Path, steps: Mapping[str, Iterable[int]], folder: Path) -> str:
    """The first step, with its case, of which yosys does not prove that it gives what it means; empty for none."""
    made = subprocess.run([sys.executable, "-c", UNITS, rtl], capture_output=True, text=True, check=True)
    (folder / "units.il").write_text(made.stdout)
    shutil.copy(MEANINGS, folder)
    lines = ["read_rtlil units.il", "proc", "opt_clean"]
    for unit, registers in REGISTERS.items():
        wires = " ".join(f"{unit}/w:{name}" for name in registers)
        lines.append(f"expose -evert-dff {wires} {unit}/t:*")
    lines += ["opt_clean", "design -stash rtl"]
    for step, cases in steps.items():
        for case in cases:
            value = str(case) if case >= 0 else f"({case})"
            lines += ["design -reset", "design -copy-from rtl output_stage addition", f"log step {step}, case {case}"]
            lines += [f"read_verilog -sv -formal -D CASE={value} {MEANINGS.name}", f"hierarchy -top {step}"]
            lines += ["proc", "flatten", "opt -full", "sat -set-assumes -set-def-inputs -prove-asserts -verify"]
    (folder / "prove.ys").write_text("\n".join(lines))
    done = subprocess.run(["yosys", "prove.ys"], cwd=folder, capture_output=True, text=True, check=False)
    told = [line for line in done.stdout.splitlines() if line.startswith("step ")]
    count = sum(1 for cases in steps.values() for _ in cases)
    assert "proof did fail" in done.stderr if done.returncode else len(told) == count, done.stderr
    return told[-1] if done.returncode else ""


@needs_tools
def test_some_cases(tmp_path: Path) -> None:
    assert failure(RTL, QUICK, tmp_path) == ""


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_every_case(step: str, tmp_path: Path) -> None:
    assert failure(RTL, {step: STEPS[step]}, tmp_path) == ""


def test_there_is_a_bug_for_each_step() -> None:
    modules = {line.split()[1] for line in MEANINGS.read_text().splitlines() if line.startswith("module ")}
    assert {bug.step for bug in BUGS.values()} == set(STEPS) == modules - {"rounds"}
    for name, bug in BUGS.items():
        assert (RTL / f"npu_rtl/{bug.file}.py").read_text().count(bug.right) == 1, name
        assert bug.case in STEPS[bug.step]


@needs_tools
@pytest.mark.slow
@pytest.mark.parametrize("name", BUGS)
def test_bugs_are_found(name: str, tmp_path: Path) -> None:
    bug, folder = BUGS[name], tmp_path / "rtl"
    shutil.copytree(RTL, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / f"npu_rtl/{bug.file}.py"
    file.write_text(file.read_text().replace(bug.right, bug.wrong))
    assert failure(folder, {bug.step: [bug.case]}, tmp_path) == f"step {bug.step}, case {bug.case}"
