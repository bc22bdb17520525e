"""Workers and schedulers that lie: nothing of theirs is run at the sweeper, and results are data of the row asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from runner.sweep.farm import Lab, lab
from support.models.networks import OWN
from uaccel.errors import UaccelError
from uaccel.report.sweep_page import page_of_results
from uaccel.runner.sweep import answer
from uaccel.runner.sweep.answer import Lost, answer_of, read_answer
from uaccel.runner.sweep.farm import Farm, Item
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.sweep.pool import PoolOutcome
from uaccel.runner.sweep.results import SweepResults
from uaccel.runner.sweep.row_result import RIGHT, BoardFailed, RowResult
from uaccel.runner.sweep.sweep import sweep

MODEL = str(OWN / "gesture.tflite")


LOST = "3 times its worker was lost before it had answered, or answered what is no text"
DIED = "its worker died, and so did those that tried it again; or they could not read what they were sent: have all ends "


def told(made: Lab, *lies: str) -> dict[str, str]:
    """The failure of a row for each lie."""
    items: list[Item] = [(name, SweepRow(MODEL, "host", tags={"lie": name}).to_json()) for name in lies]
    with Farm(made.address) as workers:
        return {outcome.item[0]: outcome.failure for outcome in workers.run(items)}


def test_nothing_that_a_worker_or_a_scheduler_sends_is_unpickled(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="Dask is not installed: pip install 'uaccel[farm]'")
    with lab(tmp_path, program=("-m", "runner.sweep.liars")) as made:
        failures = told(made, "object", "type", "exception", "events")
        wanted = {"object": LOST, "type": LOST, "exception": f"{DIED}the same Python and Dask?", "events": "said"}
        assert failures == wanted
        with pytest.raises(UaccelError, match=f"^the scheduler at {made.address} has gone; start it, and the same "):
            told(made, "stream")
        assert told(made, "greeting")["greeting"].startswith("what its worker answered is not what a worker answers: ")
        with pytest.raises(UaccelError, match=f"^no scheduler answers at {made.address} within 10 s "):
            told(made, "object")
        unpickled = (tmp_path / "unpickled").read_text().split()
        assert str(made.processes[0].pid) in unpickled, "they are bombs: Dask tries out there what it has pickled"
        assert str(os.getpid()) not in unpickled
        assert capfd.readouterr() == ("", "")
