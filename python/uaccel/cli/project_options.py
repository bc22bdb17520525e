"""What the commands on firmware projects share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from uaccel.errors import UaccelError
from uaccel.project.api_options import OptionValue

ProjectArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The project's folder, as 'uaccel create' makes it.", readable=False)
]
OptionOption = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the project's server; may be repeated."),
]
TemplateOption = Annotated[
    Path | None,
    typer.Option("--template", "-t", metavar="DIR", help="A template of your own, with its Project API server."),
]
StandaloneCrtOption = Annotated[
    Path | None,
    typer.Option(
        "--standalone-crt",
        metavar="DIR",
        help="With --template: the folder of C sources that it copies from, such as TVM's build/standalone_crt.",
    ),
]
VerboseFlag = Annotated[bool, typer.Option("--verbose", "-v", help="Show what the tools print, on stderr.")]


def read_options(words: list[str] | None) -> dict[str, OptionValue]:
    """``NAME=VALUE`` by name; the server says what it knows."""
    options: dict[str, OptionValue] = {}
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise UaccelError(f"--option {word!r}: wanted NAME=VALUE")
        if name in options:
            raise UaccelError(f"--option {name} is given twice; leave one away")
        options[name] = value
    return options
