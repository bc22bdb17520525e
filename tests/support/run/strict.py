"""Continuous integration takes no skip for granted: each is a row of a list, or it fails the run.

``UACCEL_CI`` names the list, ``.ci/skips.toml``. A row with ``later`` is about what a later set-up may bring. Such
tests are written to the file that ``UACCEL_LATER`` names, and a run with ``UACCEL_ONLY`` runs them alone.
``later = "must"``: that set-up does bring it, so the row holds for runs with ``UACCEL_LATER`` only.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.run.tiers import LEFT_OUT
from uaccel.util.files import parse_toml

LIST, LATER, ONLY = "UACCEL_CI", "UACCEL_LATER", "UACCEL_ONLY"


@dataclass(frozen=True)
class Row:
    """``reason``: a pattern of the whole of what a skipped test says; ``why``: for the reader."""

    reason: str
    why: str
    later: str = ""


def rows_of(file: Path) -> list[Row]:
    rows = [Row(**row) for row in parse_toml(file.read_text(encoding="utf-8"))["skip"]]
    assert {row.later for row in rows} <= {"", "may", "must"}, f"{file}: later is must or may"
    return rows


class Strict:
    """Judges every skip of a run.

    Under xdist a worker hands on itself what it skipped while it collected: of equal reasons xdist reports one.
    """

    def __init__(self, rows: list[Row], later: Path | None) -> None:
        self.rows = rows
        self.later = later
        self.skipped: dict[str, str] = {}
        self.collected: dict[str, str] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.collected[report.nodeid] = _reason(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped[report.nodeid] = _reason(report)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.collected |= getattr(node, "workeroutput", {}).get("skipped", {})

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["skipped"] = self.collected
            return
        if self.later is not None:
            self.later.parent.mkdir(parents=True, exist_ok=True)
            self.later.write_text("".join(f"{name}\n" for name in sorted(self._for_later())))
        if self._unlisted() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._unlisted():
            terminalreporter.section(f"skips that {os.environ[LIST]} does not list", red=True)
            for name, reason in self._unlisted().items():
                terminalreporter.line(f"{name}: {reason}")

    def _row(self, reason: str) -> Row | None:
        return next((row for row in self.rows if re.fullmatch(row.reason, reason)), None)

    def _for_later(self) -> list[str]:
        return [name for name, reason in self._all().items() if (row := self._row(reason)) and row.later]

    def _unlisted(self) -> dict[str, str]:
        """The skips that no row allows, with their reasons."""

        def listed(reason: str) -> bool:
            row = self._row(reason)
            return row is not None and (row.later != "must" or self.later is not None)

        return {name: reason for name, reason in self._all().items() if not listed(reason)}

    def _all(self) -> dict[str, str]:
        found = self.collected | self.skipped
        return {name: reason for name, reason in found.items() if reason != LEFT_OUT}


def _reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ").removeprefix("unconditional skip").strip()


def register(config: pytest.Config) -> None:
    """Add the plugin where the environment asks for it. Runs inside of tests do not write the file of this one."""
    file = os.environ.get(LIST)
    later = os.environ.pop(LATER, None)
    if file:
        config.pluginmanager.register(Strict(rows_of(Path(file)), Path(later) if later else None))


def keep_only(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests, and those of the files, that ``UACCEL_ONLY`` lists; one that is no longer there is an error.

    A file that is skipped as a whole once more has no items, and the plugin tells.
    """
    listed = os.environ.pop(ONLY, None)
    if listed is None:
        return
    wanted = set(Path(listed).read_text().split("\n")) - {""}
    files = {_file(item.nodeid) for item in items}
    lost = {name for name in wanted if _file(name) in files} - files - {item.nodeid for item in items}
    if lost:
        raise pytest.UsageError(f"{listed} names what is not there: {', '.join(sorted(lost))}")
    kept = [item for item in items if wanted & {item.nodeid, _file(item.nodeid)}]
    config.hook.pytest_deselected(items=list(set(items) - set(kept)))
    items[:] = kept


def _file(name: str) -> str:
    return name.partition("::")[0]
