"""What holds for all tests: their order and their time."""

from __future__ import annotations

import os
import shutil
import tempfile

import hypothesis
import pytest

from support.device import compilers
from support.run import strict, tiers
from support.run.command import Call, call_in

os.environ["UACCEL_CACHE"] = "off"  # a test that plants a bug must not find what was kept from before

# `make test` draws the same cases everywhere: what fails there is the change. The longer tests draw anew.
hypothesis.settings.register_profile("same", derandomize=True)
if not os.environ.get("UACCEL_THOROUGH"):
    hypothesis.settings.load_profile("same")


class Late:
    """A plugin, since a hook of this file is called for tests below it alone, and accelerators have tests, too."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        tiers.leave_out_when_late()


def pytest_configure(config: pytest.Config) -> None:
    """What C compilers make of the same content is shared by the tests of one session, and by nothing else."""
    config.pluginmanager.register(Late())
    strict.register(config)
    if "UACCEL_OBJECTS" not in os.environ:
        os.environ["UACCEL_OBJECTS"] = tempfile.mkdtemp(prefix="uaccel-objects-")
        config.add_cleanup(lambda: shutil.rmtree(os.environ["UACCEL_OBJECTS"], ignore_errors=True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.mark_slow(items)
    tiers.mark_drawn(items)
    tiers.mark_touched(items)
    compilers.skip_absent(items)
    strict.keep_only(config, items)
    rotation = os.environ.get(tiers.ROTATION)
    if rotation is not None:
        items[:] = tiers.in_order(items, int(rotation))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    late = tiers.left_out(terminalreporter.stats.get("skipped", []))
    if late:
        terminalreporter.section(f"no time was left for {late.total()} tests")
        for file, count in sorted(late.items()):
            terminalreporter.line(f"{count:5} {file}")


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    """A command in this process."""
    return call_in(capfd)
