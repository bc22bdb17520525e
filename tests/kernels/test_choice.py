"""Who picks among kernels: estimates, records of measurements, and files of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernels.test_winograd import site_of
from uaccel.errors import UaccelError
from uaccel.kernels import (
    Estimated,
    Option,
    Records,
    RecordsSelector,
    Target,
    Turn,
    Work,
    candidates,
    kernel_options,
    pick,
    read_records,
    write_records,
)
from uaccel.kernels.choice import CYCLES, INSTRUCTIONS
from uaccel.ops.conv import Conv2d
from uaccel.ops.operator import get
from uaccel.util.favour import Favour

WORK = Work(macs=1000, outputs=10)
FAST, SLOW, STRANGE = (Option(name, (name,)) for name in ("fast", "slow", "strange"))
COSTS = {"fast": {"p c t": 1.0, "p c": 5.0, "1": 100.0}, "slow": {"p c t": 2.0, "p c": 1.0}}


@pytest.mark.parametrize(
    ("options", "work", "picked", "why"),
    [
        ([FAST, SLOW], WORK, 0, "about 1,150 instructions"),
        ([SLOW, FAST], WORK, 1, "about 1,150 instructions"),
        ([FAST, SLOW], Work(10, 1), 1, "about 21 instructions"),
        ([STRANGE, FAST], WORK, 0, "the first that fits"),
        ([FAST], WORK, 0, ""),
    ],
)
def test_the_cheapest_by_estimate(options: list[Option], work: Work, picked: int, why: str) -> None:
    choice = pick(Estimated(COSTS), "site", options, work)
    assert (choice.picked, choice.why) == (picked, why)
    assert choice.options == tuple(option.label for option in options)
    told = pick(Estimated(COSTS, CYCLES), "site", options, work).why
    assert told == why.replace("instructions", "estimated cycles")


@pytest.mark.parametrize(
    ("known", "picked", "why"),
    [
        ({"fast": 900, "slow": 800}, 1, "the cheapest measured"),
        ({"fast": 800, "slow": 800}, 0, "the cheapest measured"),
        ({"slow": 1}, 0, "about 1,150 instructions"),
        ({"fast": 900}, 0, "the cheapest measured"),
        ({}, 0, "about 1,150 instructions"),
    ],
)
def test_the_cheapest_by_measurement(known: dict[str, int], picked: int, why: str) -> None:
    selector = RecordsSelector(Records("cortex-m4", {"site": known}), Estimated(COSTS))
    choice = pick(selector, "site", [FAST, SLOW], WORK)
    assert (choice.picked, choice.why) == (picked, why)


def test_what_promised_little_need_not_be_measured() -> None:
    third = Option("third", ("slow", "slow"))
    selector = RecordsSelector(Records("cortex-m4", {"site": {"fast": 900, "slow": 800}}), Estimated(COSTS))
    assert pick(selector, "site", [FAST, SLOW, third], WORK).picked == 1
    by_size = RecordsSelector(selector.records, Estimated(COSTS, favour=Favour.size), Favour.size)
    why = pick(by_size, "site", [FAST, SLOW, third], WORK).why
    assert why == "0 bytes of constants", "bytes are weighed against what all of them take, or by estimate"


def test_the_unit_of_what_was_measured_is_told() -> None:
    selector = RecordsSelector(Records("cortex-m4", {"site": {"fast": 1800, "slow": 1900}}, CYCLES))
    assert pick(selector, "site", [FAST, SLOW], WORK).why == "the cheapest measured, 1,800 estimated cycles"


@pytest.mark.parametrize(
    ("cpu", "unit"),
    [("cortex-m4", CYCLES), ("cortex-m33", CYCLES), ("rv32imac", INSTRUCTIONS), ("", INSTRUCTIONS)],
)
def test_cores_that_are_known_are_chosen_for_by_cycles(cpu: str, unit: str) -> None:
    assert Estimated.on(Target.of(cpu, ["dsp"])).unit == unit
    assert Estimated.on(Target.of(cpu, ["dsp"]), INSTRUCTIONS).unit == INSTRUCTIONS


def test_each_option_has_its_turn() -> None:
    picked = [pick(Turn(number), "site", [FAST, SLOW], WORK).picked for number in range(4)]
    assert picked == [0, 1, 1, 1]


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    records = Records("cortex-m4", {}, "instructions").with_site("b", {"x": 2}).with_site("a", {"x": 1, "y": 3})
    write_records(tmp_path / "first.json", records)
    write_records(tmp_path / "second.json", Records("cortex-m4", {}, "").merged(records))
    assert read_records(tmp_path / "first.json", "cortex-m4") == records
    assert (tmp_path / "first.json").read_bytes() == (tmp_path / "second.json").read_bytes()


def test_instructions_are_kept_beside_cycles(tmp_path: Path) -> None:
    records = Records("cortex-m4", unit=CYCLES).with_site("a", {"x": 15}, {"x": 10}).with_site("b", {"y": 3}, {"y": 2})
    write_records(tmp_path / "records.json", records)
    assert read_records(tmp_path / "records.json", "cortex-m4") == records
    assert records.counted() == Records("cortex-m4", {"a": {"x": 10}, "b": {"y": 2}}, INSTRUCTIONS)
    again = records.merged(Records("cortex-m4", {"a": {"x": 14}}, CYCLES, {"a": {"x": 9}}))
    assert (again.sites["a"], again.instructions["a"]) == ({"x": 14}, {"x": 9})
    old = Records("cortex-m4", {"a": {"x": 10}}, INSTRUCTIONS)
    assert old.counted() == old, "records of before cycles were estimated"


def test_newer_records_replace_older_ones() -> None:
    older = Records("c", {"a": {"x": 1, "y": 2}}, "instructions")
    newer = Records("c", {"a": {"x": 5}, "b": {"z": 1}}, "instructions")
    assert older.merged(newer).sites == {"a": {"x": 5, "y": 2}, "b": {"z": 1}}
    with pytest.raises(UaccelError, match=r"the records count instructions, and this board nanoseconds: say another"):
        older.merged(Records("c", {}, "nanoseconds"))


GOOD: dict[str, Any] = {"format": 1, "cpu": "cortex-m4", "unit": "instructions", "sites": {"a": {"x": 1}}}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "no JSON"),
        ("[]", "no records of measurements in format 1; make them anew with 'uaccel tune MODEL --board B'"),
        (json.dumps(GOOD | {"format": 2}), "no records of measurements in format 1"),
        (json.dumps(GOOD | {"sites": {"a": {"x": -1}}}), "no records of measurements"),
        (json.dumps(GOOD | {"sites": {"a": {"x": True}}}), "no records of measurements"),
        (json.dumps(GOOD | {"sites": {"a": 5}}), "no records of measurements"),
        (json.dumps(GOOD | {"instructions": {"a": {"x": -1}}}), "no records of measurements"),
        (json.dumps(GOOD | {"cpu": None}), "no records of measurements"),
        (json.dumps(GOOD | {"cpu": "cortex-m55"}), "measured on cortex-m55, and this is for cortex-m4; measure with"),
    ],
)
def test_other_files_are_refused(text: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    path.write_text(text)
    with pytest.raises(UaccelError, match=rf"^{path}: .*{complaint}"):
        read_records(path, "cortex-m4")
    with pytest.raises(UaccelError, match=r"none\.json: No such file or directory; 'uaccel tune' makes such files"):
        read_records(tmp_path / "none.json", "cortex-m4")


def test_every_measured_cpu_prefers_its_own_kernels() -> None:
    """On a layer of a common size: 3x3 windows of 16 channels to 16."""
    site = site_of()
    work = Work(get(Conv2d).macs(site), site.output.elements)
    ranks = {
        ("cortex-m55", "dsp", "helium"): ["conv2d_helium", "conv2d_dsp", "conv2d_blocked", "conv2d"],
        ("cortex-m4", "dsp"): ["conv2d_dsp", "conv2d_blocked", "conv2d"],
        ("cortex-m7", "dsp"): ["conv2d_dsp", "conv2d_blocked", "conv2d"],
        ("cortex-m3",): ["conv2d_blocked", "conv2d"],
        ("rv32imac", "rv32"): ["conv2d_blocked", "conv2d"],
    }
    for (cpu, *features), names in ranks.items():
        target = Target.of(cpu, ["embedded", *features])
        known = {option.label: option for option in kernel_options(candidates(get(Conv2d), site, target))}
        for unit in ("", INSTRUCTIONS):
            costs = [Estimated.on(target, unit).of(known[f"uaccel_{name}_s8"], work) for name in names]
            assert None not in costs, target
            assert costs == sorted(costs, key=lambda cost: cost or 0), target
