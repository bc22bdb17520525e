"""Makes commands of classes: their options, as their fields declare them, and their help."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_type_hints

import typer
from typer.core import TyperCommand

from uaccel.cli.completion import COMPLETIONS
from uaccel.util.option import OptionField, dataclass_transform, option, options_of, taken

GROUP: Final = "uaccel.group"
ARGUMENTS: Final = "Arguments"
# Headings of the help: a command's own options come first, and what every command has comes last.
OPTIONS: Final = "Options"
GENERAL: Final = "In general"
Parsed = TypeVar("Parsed", bound="Command")
ALL: Final = "uaccel.all"  # In a context's ``meta``: rare options are shown, too.


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True)
class Command(ABC):
    """Is a command, whose docstring is its help. A field is an option, or with ``group()`` a class of options.

    Subclasses are dataclasses of the same kind without being declared so."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)

    as_json: bool = option(False, "Write one JSON object to stdout, and nothing else.", "--json", panel=GENERAL)

    @abstractmethod
    def run(self) -> None: ...


def group(*without: str, only: Sequence[str] | None = None) -> Any:
    """Declares the options of the field's class: all ``without`` these keys, or ``only`` those."""
    return field(metadata={GROUP: (without, only)})


def add_command(app: typer.Typer, name: str, short_help: str | None, command: type[Command]) -> None:
    """Adds a command; its rare options are left to ``--help-all``."""
    rare = {_python(one) for one, _ in _owned(command) if one.option.rare}
    app.command(name, short_help=short_help, cls=_with_panels(rare))(
        as_function(command, *([_HELP_ALL] if rare else []))
    )


def as_function(command: type[Command], *more: inspect.Parameter) -> Callable[..., None]:
    """Returns a function for Typer, with the command's options as parameters."""

    def function(**given: Any) -> None:
        given.pop(_HELP_ALL.name, None)
        parsed(command, given).run()

    parameters = [_parameter(one, panel) for one, panel in _owned(command)]
    if "context" in get_type_hints(command):
        parameters.append(inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))
    function.__doc__ = command.__doc__
    vars(function)["__signature__"] = inspect.Signature([*parameters, *more])
    return function


def given_of(context: typer.Context, without: Collection[str] = ()) -> list[str]:
    """Lists the options that the user gave, as they are typed, but those with these names."""
    sources = ((str(one.name), context.get_parameter_source(str(one.name))) for one in context.command.params)
    named = (name for name, source in sources if source is not None and source.name != "DEFAULT")
    return [f"--{name.replace('_', '-')}" for name in named if name not in without]


def names_of(*owners: type) -> set[str]:
    """Returns the names that a context has for the options of these classes."""
    return {_python(one) for owner in owners for one in options_of(owner)}


def _python(one: OptionField) -> str:
    return one.key.replace("-", "_")


def _owned(command: type) -> Iterator[tuple[OptionField, str]]:
    """Yields the options of a command with the headings that they stand under: first its own, then those it shares."""
    hints, own = get_type_hints(command), {one.name: one for one in options_of(command)}
    for declared in sorted(
        fields(command), key=lambda one: (GROUP in one.metadata, one.name not in command.__annotations__)
    ):
        if declared.name in own:
            yield own[declared.name], own[declared.name].option.panel or OPTIONS
        if GROUP in declared.metadata:
            for one in _grouped(hints[declared.name], *declared.metadata[GROUP]):
                yield one, one.option.panel or getattr(hints[declared.name], "PANEL", OPTIONS)


def _grouped(owner: type, without: Sequence[str], only: Sequence[str] | None) -> Iterator[OptionField]:
    for one in options_of(owner):
        if one.key not in without and (only is None or one.key in only):
            yield one


def parsed(command: type[Parsed], given: Mapping[str, Any]) -> Parsed:
    """Makes a command of Typer's values, which are flat."""
    hints, by_key = get_type_hints(command), {name.replace("_", "-"): value for name, value in given.items()}
    found = taken(options_of(command), by_key)
    for declared in fields(command):
        if GROUP in declared.metadata:
            owner = hints[declared.name]
            found[declared.name] = owner(**taken(_grouped(owner, *declared.metadata[GROUP]), by_key))
        elif declared.name == "context":
            found["context"] = given["context"]
    return command(**found)


# One option as Typer takes it.


def _parameter(one: OptionField, panel: str) -> inspect.Parameter:
    told, default = one.option, None if one.many and one.default is not MISSING else one.default
    ways: dict[str, Any] = {
        "help": told.text,
        "metavar": told.metavar,
        "min": told.least,
        "autocompletion": COMPLETIONS.get(told.metavar),
        "callback": _reader(one),
        "rich_help_panel": panel,
        "readable": False,  # Who reads a file says what is wrong with it, more exactly than Typer.
    }
    shows = not (told.metavar and one.choices)  # A value that is optional has no default to tell.
    given = typer.Argument(**ways) if told.positional else typer.Option(*told.flags, show_default=shows, **ways)
    kind: Any = str if told.read is not None else Literal[told.choices] if told.choices else one.type
    if one.many:
        kind = list[Path] if Path in get_args(one.type) else list[str]
    return inspect.Parameter(
        _python(one),
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is MISSING else default,
        annotation=Annotated[kind if default is not None else kind | None, given],
    )


def _reader(one: OptionField) -> Callable[[Any], Any] | None:
    """Returns what reads a value while the line is parsed, so that a complaint names the option."""
    if one.option.read is None:
        return None

    def read(given: Any) -> Any:
        try:
            if given:
                one.value(given)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        return given

    return read


# Help: options under headings, and the rare ones where they are asked for.


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[ALL] = True
        typer.echo(context.get_help())
        raise typer.Exit


_HELP_ALL: Final = inspect.Parameter(
    "help_all",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--help-all", is_eager=True, callback=_show_all, help="Show rare options, too, and exit.")
    ],
)


def _with_panels(rare: Collection[str]) -> type[TyperCommand]:
    class Shown(TyperCommand):
        """Shows options under their headings, those for everything last."""

        def format_options(self, ctx: Any, formatter: Any) -> None:
            panels: dict[str, list[tuple[str, str]]] = {}
            for one in self.get_params(ctx):
                record = one.get_help_record(ctx)
                is_argument = one.param_type_name == "argument"
                panel = ARGUMENTS if is_argument else getattr(one, "rich_help_panel", None) or GENERAL
                if record is not None and (ctx.meta.get(ALL) or one.name not in rare):
                    panels.setdefault(panel, []).append(record)
            for panel in sorted(panels, key=lambda name: (name != ARGUMENTS, name != OPTIONS, name == GENERAL)):
                with formatter.section(panel):
                    formatter.write_dl(panels[panel])

    return Shown
