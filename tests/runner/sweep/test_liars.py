"""Workers and schedulers that lie: none of it runs at the sweeper, and results are data of the row asked for."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runner.sweep.farm import Lab, lab
from support.models.networks import OWN
from uaccel.board import load_board
from uaccel.errors import DeviceError, InputError, UaccelError
from uaccel.report.sweep_page import page_of_results
from uaccel.runner.sweep import answer
from uaccel.runner.sweep.answer import Lost, answer_of, read_answer
from uaccel.runner.sweep.farm import Farm, Item
from uaccel.runner.sweep.matrix import SweepRow
from uaccel.runner.sweep.pool import PoolOutcome
from uaccel.runner.sweep.results import SweepResults
from uaccel.runner.sweep.row_result import RIGHT, BoardFailed, RowResult
from uaccel.runner.sweep.sweep import sweep
from uaccel.runner.sweep.worker import Parcel, Task, do_task
from uaccel.session.link import Timeouts
from uaccel.testing.remote import BoardInLab
from uaccel.util.cache import sources_digest
from uaccel.version import __version__

MODEL = str(OWN / "gesture.tflite")
OUTCOME: dict[str, Any] = {"outputs": "", "seconds": None, "instructions": None, "stack": 0, "calls": {}, "reports": {}}


def pickled() -> str:
    """An .npz file whose array is a pickle, as text."""
    stream = BytesIO()
    np.savez(stream, x=np.array([print], object))
    return base64.b64encode(stream.getvalue()).decode()


PICKLED = pickled()


LOST = "3 times its worker was lost before it had answered, or answered what is no text"
DIED = (
    "its worker died, and so did those that tried it again; or they could not read what they were sent: have all ends "
)


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


GOOD: dict[str, Any] = RowResult("d", SweepRow(MODEL, "host"), RIGHT).to_json()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (3, "it is no text of at most "),
        ("[" * 100_000, "values are nested too deeply"),
        ("what", "Expecting value"),
        ("[]", "it is [], wanted an object"),
        ('{"result": {}, "board": "x", "lost": null}', "it tells result and board; wanted one of "),
        ('{"result": null, "board": null, "lost": null}', "it tells nothing; wanted one of "),
        ('{"result": [], "board": null, "lost": null}', "result is [], wanted an object"),
        ('{"result": {"took": NaN}, "board": null, "lost": null}', "a float is no finite number"),
        (answer_of({"took": 1 << 70}), "an integer has more than 64 bits"),
        (answer_of({"log": "\ud800"}), "surrogates not allowed"),
        (answer_of(Lost("x", attempts=0)), "lost.attempts is 0, wanted a number from 1 to 3"),
        (answer_of({"log": "x" * 100_000}), "it is no text of at most "),
    ],
)
def test_what_is_no_answer(text: Any, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "LONGEST", 100_000)
    with pytest.raises(ValueError, match=re.escape(words)):
        read_answer(text, {})


def test_answers_are_read_as_they_were_given() -> None:
    for found in (GOOD, BoardFailed("away"), Lost("died", "log", 3)):
        assert read_answer(answer_of(found), {}) == found


class Liar:
    """Gives one and the same result for whatever it is asked."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def run(self, items: Sequence[Item], given: Any = None) -> Iterator[PoolOutcome]:
        yield from (PoolOutcome(item, self.result) for item in items)


def swept(result: Any, folder: Path) -> RowResult:
    """What a sweep of one row makes of a result."""
    (found,) = sweep([SweepRow(MODEL, "host")], SweepResults(folder / "r.jsonl"), Liar(result), again=True).results
    return found


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        ({"digest": "e"}, "it is of another row"),
        ({"digest": None}, "digest is None, wanted text"),
        ({"status": "splendid"}, "status is 'splendid', wanted right, ran, wrong or failed"),
        ({"took": "1"}, "took is '1', wanted a number from 0"),
        ({"report": {"layers": [3]}}, "report.layers[0] is 3, wanted an object"),
        ({"report": {"layers": [{"engine": []}]}}, "report.layers[0].engine is [], wanted text"),
        ({"report": {"engines": [{"name": "x", "macs_per_cycle": "1"}]}}, "report.engines[0].macs_per_cycle is '1', "),
        ({"report": {"graph": {"layers": [{"moved": {}}]}}}, "report.graph.layers[0].moved is {}, wanted a number"),
        ({"report": {"offloaded": 7}}, "report.offloaded is 7, wanted a list"),
    ],
)
def test_a_result_of_another_form_or_row_is_a_failure_of_the_row(
    lie: dict[str, Any], words: str, tmp_path: Path
) -> None:
    digest = SweepRow(MODEL, "host").digest()
    found = swept(GOOD | {"digest": digest} | lie, tmp_path)
    assert (found.digest, found.status) == (digest, "failed")
    assert found.error.startswith(f"what came back is no result of it: {words}")


def test_what_a_result_says_of_its_row_is_not_believed_and_names_stay_names(tmp_path: Path) -> None:
    """The row is the one that was asked for; markup is text on the page of the sweep."""
    row, markup = SweepRow(MODEL, "host"), "<script>alert(1)</script>"
    lie = {"digest": row.digest(), "row": {"model": "/other"}, "title": markup, "label": markup, "surplus": 1}
    lie |= {"status": "failed", "error": markup, "log": markup, "worker": markup, "report": {markup: markup}}
    found = swept(GOOD | lie, tmp_path)
    assert (found.row, found.label, found.error) == (row, "", markup)
    page, _ = page_of_results([tmp_path / "r.jsonl"])
    assert (page.count(markup), page.count("&lt;script&gt;alert(1)")) == (0, 2), "as error and log"


@pytest.mark.parametrize(
    ("result", "kind", "words"),
    [
        ({"error": "InputError", "words": "x"}, InputError, "x"),
        ({"error": "LayerError", "words": "x"}, DeviceError, "x"),
        ({"error": "escape_terminal", "words": "x"}, DeviceError, "x"),
        ({"error": 1, "words": "x"}, DeviceError, "what came back is no error of a check: error is 1, wanted text"),
        ({}, DeviceError, "what came back is no outcome of a check: outputs is missing"),
        ({**OUTCOME, "stack": -1}, DeviceError, "what came back is no outcome of a check: stack is -1, wanted "),
        ({**OUTCOME, "outputs": "?"}, DeviceError, "what came back is no outcome of a check: outputs: Only base64 "),
        ({**OUTCOME, "outputs": PICKLED}, DeviceError, "what came back is no outcome of a check: outputs: Object arr"),
    ],
)
def test_what_comes_back_of_a_check_is_read_as_data(result: Any, kind: type[UaccelError], words: str) -> None:
    farm: Any = Liar(result)
    board = BoardInLab(load_board("host"), "", farm, (Path(),), Timeouts(), lambda name, value: None)
    with pytest.raises(UaccelError, match=f"^{re.escape(words)}") as told:
        board.check(MODEL)
    assert type(told.value) is kind


def test_a_workers_refusal_is_the_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another commit of the same version is refused, and what cannot be unpacked; both are told as data."""
    monkeypatch.setenv("UACCEL_CACHE", str(tmp_path))
    row = SweepRow(MODEL, "host").to_json()
    other = do_task(Task("whole", "d", row, sources="0" * 64), [], None)
    lost = read_answer(other, {})
    assert lost.failure.startswith(
        f"worker  has another uaccel: {__version__} of sources {sources_digest()[:12]}, wante"
    )
    escaping = do_task(Task("whole", "d", row), [Parcel("0" * 32, "x", {"../x": b""})], None)
    assert read_answer(escaping, {}) == Lost("a parcel holds the name '../x'; wanted one that stays in its folder")
    broken: Any = None
    assert read_answer(do_task(Task("whole", "d", row), broken, None), {}).failure.startswith("worker : TypeError: ")
