"""An option is declared once: each is found wherever people give options, or this page says why it is not."""

from __future__ import annotations

import inspect
import re
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main
from api_server.options import OPTIONS as OF_SERVER
from typer.testing import CliRunner

from support.models.networks import OWN
from uaccel.cli.app import make_app
from uaccel.cli.command import parsed
from uaccel.cli.run import RunCommand
from uaccel.codegen.options import EmitOptions
from uaccel.errors import UaccelError
from uaccel.runner.options import EngineRequest, ProjectRunOptions
from uaccel.runner.prepare import key_of
from uaccel.runner.request import Devices, RunRequest
from uaccel.runner.sweep.matrix import OPTIONS, SweepRow
from uaccel.testing import BoardUnderTest
from uaccel.testing.plugin import PytestOptions
from uaccel.util.option import OptionField, options_of

GESTURE = str(OWN / "gesture.tflite")
COMPILES = (EmitOptions, EngineRequest, RunRequest)
RUN = {one.key: (owner, one) for owner in (*COMPILES, ProjectRunOptions, Devices) for one in options_of(owner)}
# Values of options that are given several times.
LISTS = {"NAME:D0,D1,...": ["x:1,3"], "LAYER=ENGINE": ["conv=cpu"], "NAME=VALUE": ["a=b"], "NAME|PATH": ["npu"]}

BESIDE = dict.fromkeys(("outputs", "trace", "report", "project", "symbols", "details"), "a result has the usual JSON")
OF_RTL = dict.fromkeys(("waves", "waves-layer", "coverage"), "it is of one run alone")
HERE = {"no-flash": "each row is other firmware", "option": "rows are models, and it is for a project's server"}
NOT_IN_ROWS = (
    BESIDE | OF_RTL | HERE | {"accelerator": "it is an axis", "device": "rows that run at once share variables"}
)
NOT_REPEATED = BESIDE | OF_RTL | HERE | {"name": "it comes first", "port": "another's board is elsewhere"}
NOT_REPEATED |= {"allow-none": "it changes nothing of what is made"}
NOT_OF_CHECKS = {
    **(BESIDE | OF_RTL | {"device": "uaccel.testing has DriverUnderTest for it"}),
    **dict.fromkeys(("profile", "repeat", "verify", "option"), "a check is verified and tells what it measured"),
    **{one.key: "a check compiles as usual" for owner in COMPILES for one in options_of(owner)},
    "no-flash": "a check is of new firmware",
}


@cache
def commands() -> dict[str, Any]:
    made = typer.main.get_command(make_app()).commands.items()  # type: ignore[attr-defined]
    groups = {name: getattr(one, "commands", {"": one}) for name, one in made}
    return {f"{name} {own}".strip(): one for name, group in groups.items() for own, one in group.items()}


def other(one: OptionField, file: Path) -> Any:
    """A value besides the default, as a matrix file would give it."""
    if one.choices:
        return one.choices[-1] if one.choices[-1] != one.default else one.choices[0]
    if one.many:
        return LISTS.get(one.option.metavar or "", ["pool=4096"])
    if one.type is Path:
        return str(file)
    return {bool: one.default is False and one.key != "workspace-io", int: 3, str: "text"}[one.kind]


def typed(*words: str) -> RunCommand:
    """What a command line asks for."""
    context = commands()["run"].make_context("run", list(words))
    return parsed(RunCommand, {**context.params, "context": context})


def request_of(words: list[str]) -> RunRequest:
    return typed(GESTURE, "-a", "matrix8", *words).asked()


def held(request: RunRequest, owner: type, name: str) -> Any:
    holders = {EmitOptions: request.emit, EngineRequest: request.engines, ProjectRunOptions: request.wishes}
    return getattr({**holders, Devices: request.devices}.get(owner, request), name)


@pytest.mark.parametrize("key", RUN)
def test_what_a_field_brings(key: str, tmp_path: Path) -> None:
    """A command line, rows of sweeps, keys of the cache, and a command that does the same, which says it again."""
    (owner, one), file = RUN[key], tmp_path / "file"
    file.write_text("{}")
    given = other(one, file)
    value, plain = one.value(given), SweepRow(GESTURE, "host", ("matrix8",))
    row = SweepRow(GESTURE, "host", ("matrix8",), {key: given})
    assert (key in OPTIONS, one.option.repeats) == (key not in NOT_IN_ROWS, key not in NOT_REPEATED)
    if key in OPTIONS:
        assert held(row.request(), owner, one.name) == value
        assert row.digest() != plain.digest(), "no result stands for another row"
    words = one.words(value)
    assert words[0] in one.option.flags[0].split("/")
    words = [f"{words[0]}={words[1] if words[1:] else value}"] if key == "verify" else words
    words = [word if word != file.name else str(file) for word in words]
    request = request_of(words)
    assert held(request, owner, one.name) == (("matrix8", *value) if key == "accelerator" else value)
    compiles = (owner in COMPILES and key != "project") or key == "port"  # at a line, inputs and outputs lie elsewhere
    assert (digest(request) != digest(request_of([]))) == compiles
    with nullcontext() if owner is ProjectRunOptions else pytest.raises(UaccelError, match=f"^--{key} is for a model "):
        typed(str(tmp_path), *words)._refuse()


def digest(request: RunRequest) -> str:
    found = key_of(request)
    assert found is not None
    return found.digest


def test_checks_of_pytest_take_the_others() -> None:
    taken = {name.rstrip("s") for name in inspect.signature(BoardUnderTest.check).parameters}
    taken |= {one.key for one in options_of(PytestOptions)}
    of_checks = {key for key in RUN if key.rstrip("s") in taken}
    assert RUN.keys() - of_checks <= NOT_OF_CHECKS.keys()
    assert {"accelerator", "objective", "inputs", "port", "samples", "seed", "sequence"} == of_checks


def test_the_server_of_projects_has_the_options_that_commands_have() -> None:
    names = {one.name for name in ("create", "build", "flash") for one in commands()[name].params}
    assert {one.name for one in OF_SERVER} - names == {"board_files", "run", "run_arguments"}, "these take --option"


@pytest.mark.parametrize("name", commands())
def test_help_fits_a_screen_and_the_rest_stands_in_help_all(name: str) -> None:
    def shown(flag: str) -> set[str]:
        done = CliRunner().invoke(make_app(), [*name.split(), flag], env={"COLUMNS": "100"})
        return set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", done.output, re.MULTILINE))

    all_of_it = {one.opts[0] for one in commands()[name].params if one.param_type_name == "option"}
    assert len(shown("--help")) <= 20
    assert "--json" in all_of_it
    assert shown("--help-all" if "--help-all" in all_of_it else "--help") == all_of_it | {"--help"}
