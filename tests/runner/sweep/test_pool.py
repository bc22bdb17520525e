"""Processes that work through a list: none is lost, whatever becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.sweep.farm import children, command, soon
from uaccel.runner.sweep.options import PoolLimits
from uaccel.runner.sweep.pool import PoolOutcome, WorkerPool


def act(item: tuple[str, Any]) -> Any:
    """What an item says."""
    what, value = item
    if what == "give":
        return value
    if what == "raise":
        print("before it failed")
        raise ValueError(value)
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "die once":
        mark = Path(value)
        if not mark.exists():
            mark.write_text("")
            os._exit(9)
        return "at the second attempt"
    if what == "sleep":
        time.sleep(value)
    if what == "eat":
        return len(bytearray(value))
    if what == "child":
        return subprocess.Popen(["sleep", "600"]).pid
    if what == "loud":
        print("x" * value)
        raise ValueError("loud")
    return None


def outcomes(items: list[tuple[str, Any]], processes: int = 2, limits: PoolLimits | None = None) -> list[PoolOutcome]:
    with WorkerPool(act, processes, limits) as pool:
        return sorted(pool.run(items), key=lambda outcome: items.index(outcome.item))


def test_every_item_has_one_outcome() -> None:
    found = outcomes([("give", number) for number in range(50)])
    assert [outcome.result for outcome in found] == list(range(50))
    assert {outcome.attempts for outcome in found} == {1}


def test_what_raises_fails_alone_and_its_words_are_kept() -> None:
    first, bad, last = outcomes([("give", 1), ("raise", "no"), ("give", 2)], processes=1)
    assert (first.result, last.result) == (1, 2)
    assert (bad.result, bad.failure) == (None, "ValueError: no")
    assert "before it failed" in bad.log
    assert "ValueError: no" in bad.log


def test_a_process_that_dies_is_replaced_and_its_item_tried_three_times(tmp_path: Path) -> None:
    dead, once, good = outcomes([("die", 0), ("die once", str(tmp_path / "mark")), ("give", 3)])
    assert (dead.failure, dead.attempts) == ("its process ended by signal 9", 3)
    assert (once.result, once.attempts) == ("at the second attempt", 2)
    assert good.result == 3


def test_what_takes_too_long_is_ended_and_not_tried_again() -> None:
    begun = time.monotonic()
    slow, good = outcomes([("sleep", 60), ("give", 1)], limits=PoolLimits(seconds=3))
    assert (slow.failure, slow.attempts) == ("took longer than 3 seconds", 1)
    assert good.result == 1
    assert time.monotonic() - begun < 30


def test_what_takes_too_much_memory_fails() -> None:
    big, good = outcomes([("eat", 4 << 30), ("eat", 1000)], limits=PoolLimits(memory=2 << 30))
    assert big.failure == "ran out of memory"
    assert good.result == 1000


def test_what_a_process_started_ends_with_the_pool() -> None:
    with WorkerPool(act, 1) as pool:
        (outcome,) = pool.run([("child", 0)])
        os.kill(outcome.result, 0)
    for _ in range(50):
        status = Path(f"/proc/{outcome.result}/stat")
        if not status.exists() or status.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    pytest.fail("it lives on")


ALONE = "import time; from uaccel.runner.sweep.pool import WorkerPool; list(WorkerPool(time.sleep, 1).run([600]))"


def test_what_is_done_for_one_who_was_killed_ends() -> None:
    parent = subprocess.Popen([sys.executable, "-c", ALONE])
    (child,) = soon(lambda: [pid for pid in children(parent.pid) if b"spawn_main" in command(pid)])
    parent.kill()
    parent.wait()
    soon(lambda: b"spawn_main" not in command(child))


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (PoolLimits(), PoolLimits(), PoolLimits()),
        (PoolLimits(1.5, 20, 300), PoolLimits(), PoolLimits(1.5, 20, 300)),
        (PoolLimits(1.5, 20, None), PoolLimits(0.5, 30, 7), PoolLimits(0.5, 20, 7)),
    ],
)
def test_of_two_limits_the_smaller_holds(one: PoolLimits, other: PoolLimits, both: PoolLimits) -> None:
    assert one.within(other) == other.within(one) == both


def test_a_log_without_end_is_cut() -> None:
    (loud,) = outcomes([("loud", 1_000_000)])
    assert len(loud.log) <= 8192
    assert loud.log.rstrip().endswith("ValueError: loud")


def test_a_thousand_items_take_little_each() -> None:
    with WorkerPool(act, 2) as pool:
        list(pool.run([("give", 0), ("give", 1)]))  # now both are there
        begun = time.monotonic()
        assert len(list(pool.run([("give", number) for number in range(1000)]))) == 1000
    assert (time.monotonic() - begun) / 1000 < 0.02


def test_an_item_is_asked_for_when_a_process_is_free() -> None:
    asked: list[int] = []

    def coming() -> Iterator[tuple[str, int]]:
        for number in range(6):
            asked.append(number)
            yield "give", number

    with WorkerPool(act, 2) as pool:
        for done, outcome in enumerate(pool.run(coming()), 1):
            assert outcome.result in range(6)
            assert len(asked) <= done + 2
    assert asked == list(range(6))


@pytest.mark.slow
def test_it_ends_when_the_time_is_up_and_goes_on_with_other_items() -> None:
    begun = time.monotonic()
    with WorkerPool(act, 2) as pool:
        pool_items = [("give", 1), ("sleep", 60), ("sleep", 60), ("give", 2)]
        first = [outcome.result for outcome in pool.run(pool_items, begun + 4)]
        assert first == [1]
        assert 4 <= time.monotonic() - begun < 20
        assert list(pool.run([("give", 3)], begun)) == []
        assert [outcome.result for outcome in pool.run([("give", 4)])] == [4]
