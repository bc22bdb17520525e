"""Adds to pytest the options of uaccel, the marker ``uaccel_needs`` and the fixture ``uaccel_board``.

Pytest loads this module in every run, so it imports nothing of weight before a test asks for a board.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from uaccel.errors import UaccelError
from uaccel.runner.sweep.options import LabOptions
from uaccel.util.option import like, made, option, options_of

if TYPE_CHECKING:
    from uaccel.board import Board
    from uaccel.runner.sweep.farm import Farm
    from uaccel.session.link import Timeouts
    from uaccel.testing import BoardUnderTest
    from uaccel.testing.firmware_cache import Workshop

FIXTURE: Final = "uaccel_board"
MARKER: Final = "uaccel_needs"


@dataclass(frozen=True, kw_only=True)
class PytestOptions:
    """Holds the options of pytest, each of which is called ``--uaccel-`` and its name."""

    board: tuple[str, ...] = option(
        (), "a board's name or the path of a board file; several: every test runs on each (host)", metavar="BOARD"
    )
    port: tuple[str, ...] = option(
        (),
        "where a real board is: a device, a URL, or auto; also in the variable UACCEL_PORT",
        metavar="[BOARD=]PORT",
    )
    wait: float = option(
        600.0, "how long to wait for a board that another run has, or for a worker (600)", metavar="SECONDS"
    )
    timeout: float = option(120.0, "how long one inference may take (120)", metavar="SECONDS")
    strict: bool = option(False, "a board or a tool that is absent is a failure, not a skip")
    scheduler: str | None = like(LabOptions, "scheduler", None)
    tls: Path | None = like(LabOptions, "tls", None)


@dataclass
class _State:
    """Holds what tests of one pytest run share."""

    said: PytestOptions
    workshop: Workshop | None = None
    farm: Farm | None = None


STATE: Final = pytest.StashKey[_State]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("uaccel", "models on boards (uaccel)")
    for one in options_of(PytestOptions):
        told = one.option
        way: dict[str, Any] = (
            {"action": "store_true"} if one.kind is bool else {"metavar": told.metavar, "type": one.kind}
        )
        if one.many:
            way = {"metavar": told.metavar, "action": "append"}
        group.addoption(f"--uaccel-{one.key}", help=told.text, default=None, **way)


def _said(config: pytest.Config) -> PytestOptions:
    return config.stash[STATE].said


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(need, ...): skip the test on boards that lack something: accelerator, memory=SIZE, flash=SIZE, "
        "a feature of the CPU such as helium, or a way to run (host, qemu, rtl, serial)",
    )
    given = {one.key: config.getoption(f"--uaccel-{one.key}") for one in options_of(PytestOptions)}
    said = made(PytestOptions, given)
    config.stash[STATE] = _State(said)
    if said.board or said.port:
        try:
            _ports(config, _boards(config))
        except UaccelError as error:
            raise pytest.UsageError(str(error)) from error


def pytest_unconfigure(config: pytest.Config) -> None:
    farm = config.stash[STATE].farm if STATE in config.stash else None
    if farm is not None:
        farm.__exit__(None, None, None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs every test that asks for a board on each board, unless the test says itself on which."""
    if FIXTURE in metafunc.fixturenames and not _says_itself(metafunc.definition):
        names = _names(metafunc.config)
        metafunc.parametrize(FIXTURE, names, ids=[Path(name).stem for name in names], indirect=True)


def _says_itself(definition: pytest.Item) -> bool:
    for mark in definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs.get("argnames", ())
        if FIXTURE in (names.replace(" ", "").split(",") if isinstance(names, str) else names):
            return True
    return False


@pytest.fixture
def uaccel_board(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardUnderTest]:
    """A board, for this test alone: ``uaccel_board.check("model.tflite")`` compiles, flashes, runs and compares."""
    try:
        board, port = _chosen(request)
        _skip_where_needs_are_not_met(request.node, board, port)
        if _said(request.config).scheduler:
            yield _in_lab(request, board, port)
            return
        _skip_where_absent(request.config, board, port)
        with ExitStack() as stack:
            held = _hold(stack, request, board, port)
            yield _under_test(request, tmp_path_factory, board, held)
    except UaccelError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def _names(config: pytest.Config) -> list[str]:
    from uaccel.testing.needs import USUAL

    return list(_said(config).board) or [USUAL]


def _boards(config: pytest.Config) -> list[Board]:
    from uaccel.board import load_board

    return [load_board(name) for name in _names(config)]


def _ports(config: pytest.Config, boards: Sequence[Board]) -> dict[str, str]:
    from uaccel.testing.needs import ports_of

    return ports_of(boards, list(_said(config).port))


def _chosen(request: pytest.FixtureRequest) -> tuple[Board, str]:
    """Returns the board of this test, and its port if it has one."""
    from uaccel.board import load_board

    boards = _boards(request.config)
    board = load_board(getattr(request, "param", boards[0].file))
    return board, _ports(request.config, boards).get(board.name, "")


def _skip_where_needs_are_not_met(item: Any, board: Board, port: str) -> None:
    from uaccel.testing.needs import lacks

    for mark in item.iter_markers(MARKER):
        for need in mark.args:
            reason = lacks(board, port, str(need))
            if reason is not None:
                pytest.skip(f"board {board.name} lacks {need}: {reason}")


def _skip_where_absent(config: pytest.Config, board: Board, port: str) -> None:
    from uaccel.testing.needs import absence

    reason = absence(board, port)
    if reason is not None and _said(config).strict:
        pytest.fail(reason, pytrace=False)
    if reason is not None:
        pytest.skip(reason)


def _hold(stack: ExitStack, request: pytest.FixtureRequest, board: Board, port: str) -> str:
    """Locks a board at a line for this test and returns its port; returns nothing for an emulated one."""
    from uaccel.bench import find_port, hold
    from uaccel.testing.needs import over_line

    if not over_line(board, port):
        return ""
    found = find_port(board, port)
    stack.enter_context(hold(found, wait=_said(request.config).wait, user=f"pytest {request.node.nodeid}"))
    return found


def _under_test(
    request: pytest.FixtureRequest, factory: pytest.TempPathFactory, board: Board, port: str
) -> BoardUnderTest:
    from uaccel.testing import BoardUnderTest
    from uaccel.testing.firmware_cache import Workshop

    state = request.config.stash[STATE]
    if state.workshop is None:
        state.workshop = Workshop(factory.mktemp("uaccel"))
    return BoardUnderTest(board, port, state.workshop, *_of_the_test(request))


def _in_lab(request: pytest.FixtureRequest, board: Board, port: str) -> BoardUnderTest:
    from uaccel.testing.remote import BoardInLab, farm_of

    state = request.config.stash[STATE]
    if state.farm is None:
        state.farm = farm_of(state.said.scheduler or "", state.said.tls, state.said.wait)
    return BoardInLab(board, port, state.farm, *_of_the_test(request))


def _of_the_test(request: pytest.FixtureRequest) -> tuple[tuple[Path, Path], Timeouts, Callable[[str, object], None]]:
    """The folders of its models, how long an inference may take, and what records a figure."""
    from uaccel.session.link import Timeouts

    folders = (request.path.parent, request.config.invocation_params.dir)
    timeouts = Timeouts(run=_said(request.config).timeout)
    return folders, timeouts, lambda name, value: _record(request.node, name, value)


def _record(item: Any, name: str, value: object) -> None:
    """Records a figure for JUnit's XML and other reports."""
    item.user_properties.append((name, value))
