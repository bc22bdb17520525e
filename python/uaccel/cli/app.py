"""Lists the commands, runs one, and turns each way in which it may end into an exit status.

Modules of ``uaccel.cli`` have a function that adds their command to the application. They import what is heavy, as TVM,
only when the command runs, so that ``uaccel --help`` answers at once.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import typer.main

from uaccel.build.children import EndedError, ending_signals
from uaccel.cli import output
from uaccel.cli.command import Command, add_command
from uaccel.errors import InternalError, UaccelError
from uaccel.version import __version__

# The commands in the order of the help: a name, what the list of all says of it, and the class, or where that is.
COMMANDS: Final[tuple[tuple[str, str | None, str | type[Command]], ...]] = (
    ("doctor", "What you can do here, and how to get the rest.", "doctor:DoctorCommand"),
    ("demo", "Compile, build, run and verify a model that comes along.", "start:DemoCommand"),
    ("boards", "The boards that come with uaccel; one of them, or of yours.", "boards:BoardsCommand"),
    ("models", "Known models, what they need, and how to get them.", "models:commands"),
    ("accelerators", "List the accelerators.", "accelerators:AcceleratorsCommand"),
    ("compile", "Compile a model to C, in an archive.", "compile:CompileCommand"),
    ("evaluate", "Tell a model's accuracy on a board.", "evaluate:EvaluateCommand"),
    ("explain", "Tell who computes which layer, and why.", "explain:ExplainCommand"),
    ("export", "Write a model as a library for a build system.", "export:ExportCommand"),
    ("create", "Make a firmware project of an archive.", "project:CreateCommand"),
    ("build", "Build a project's firmware.", "project:BuildCommand"),
    ("ports", "Serial ports and debug probes, and which boards they may be.", "project:PortsCommand"),
    ("flash", "Write a project's firmware to its board.", "project:FlashCommand"),
    ("monitor", "Show what a board logs.", "project:MonitorCommand"),
    ("run", "Run a model or a project on a board.", "run:RunCommand"),
    ("check", "Hold an accelerator's model and RTL to what it means.", "check:CheckCommand"),
    ("synth", "Area and clock of an accelerator's RTL on an FPGA.", "synth:SynthCommand"),
    ("report", "Write a page that shows a run, or compares several.", "report:ReportCommand"),
    ("sweep", "Run a matrix of models, boards, accelerators and options.", "sweep:SweepCommand"),
    ("worker", "Work for those who sweep: builds, and the boards that are here.", "worker:WorkerCommand"),
    ("tune", "Measure the kernels of each layer, and keep the fastest.", "tune:TuneCommand"),
    ("quantize", "Quantise a float ONNX or PyTorch model.", "quantize:QuantizeCommand"),
    ("cache", "Show or prune what is kept of earlier runs.", "cache:commands"),
    ("new", "Write a working starting point.", "start:commands"),
)

_INTERRUPTED: Final = 130
_ENVIRONMENT: Final = {errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.ENAMETOOLONG}
_PACKAGE: Final = Path(__file__).resolve().parent.parent


def _loaded(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(import_module(f"uaccel.cli.{module}"), name)


def make_app(asked: str | None = None) -> typer.Typer:
    """Makes the application with all its commands.

    Where one is ``asked`` for, or none of them, the others are only named, which takes no time."""
    app = typer.Typer(
        rich_markup_mode=None,  # plain help: square brackets stay what they are
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_options)
    for name, short_help, where in COMMANDS:
        if asked not in (None, name):
            app.command(name, short_help=short_help)(lambda: None)
            continue
        found = _loaded(where) if isinstance(where, str) else where
        if isinstance(found, type):
            add_command(app, name, short_help, found)
        else:
            app.add_typer(found(), name=name, short_help=short_help)
    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status."""
    args = with_optional_values(list(sys.argv[1:] if arguments is None else arguments)) or ["--help"]
    as_json = "--json" in (args[: args.index("--")] if "--" in args else args)
    try:
        with output.stdout_for(as_json), ending_signals() as ended:
            status = _run(args, as_json, ended)
    except EndedError as error:  # on the way out
        return error.status
    except BrokenPipeError:  # the reader, head or less, has seen enough
        output.discard_stdout()
        return UaccelError.exit_status
    except (UaccelError, OSError) as error:
        output.say(f"error: cannot write to standard output: {getattr(error, 'strerror', error)}")
        output.discard_stdout()
        return UaccelError.exit_status
    return status


def with_optional_values(args: list[str]) -> list[str]:
    """Gives ``--verify`` its value in the same word, since Typer has no options with an optional value."""
    found: list[str] = []
    for position, word in enumerate(args):
        if word == "layers" and position and args[position - 1] == "--verify":
            found[-1] = "--verify=layers"
        else:
            found.append({"--verify-layers": "--verify=layers", "--verify": "--verify=outputs"}.get(word, word))
    return found


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"uaccel {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Quantised neural networks to bare-metal C firmware, with your own accelerator in the loop."""


def _run(args: list[str], as_json: bool, ended: list[EndedError]) -> int:
    """Run one command; whatever it raises ends as one line and a status. ``ended``: a signal that came meanwhile.

    A signal takes precedence over the error, which most often is its consequence."""
    try:
        result = typer.main.get_command(make_app(_asked(args))).main(args, prog_name="uaccel", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt, EndedError) as error:
        if os.environ.get("UACCEL_DEBUG") == "1":
            traceback.print_exc()
        return _fail(_describe(ended[0] if ended else error), as_json)
    if result == _INTERRUPTED:  # Typer catches the interrupt itself
        return _fail(_describe(KeyboardInterrupt()), as_json)
    return result if isinstance(result, int) else 0


def _asked(args: list[str]) -> str | None:
    """Returns the command that is asked for, None where a shell asks for completions of any."""
    return None if "_UACCEL_COMPLETE" in os.environ else args[0]


@dataclass(frozen=True)
class _Failure:
    kind: str
    message: str
    status: int
    prefix: str = "error: "


def _describe(error: BaseException) -> _Failure:
    """Says what went wrong and whose fault it is: the user's, the computer's, or a bug of uaccel."""
    kind = type(error).__name__
    if isinstance(error, UaccelError) and not isinstance(error, InternalError):
        return _Failure(kind, str(error), error.exit_status)
    if isinstance(error, typer.TyperException):
        return _Failure("UsageError", _usage_message(error), error.exit_code)
    if isinstance(error, EndedError):
        return _Failure("Terminated", f"ended by {error}", error.status, prefix="")
    if isinstance(error, (typer.Abort, KeyboardInterrupt)):
        return _Failure("Interrupted", "interrupted", _INTERRUPTED, prefix="")
    if isinstance(error, OSError) and error.errno in _ENVIRONMENT:
        place = error.filename if error.filename is not None else _unnamed(error)
        return _Failure("EnvironmentError", f"{place}: {error.strerror}", UaccelError.exit_status)
    if isinstance(error, RuntimeError) and str(error).startswith("Symlink loop"):  # Python's word for ELOOP
        return _Failure("EnvironmentError", f"{error}; remove the link", UaccelError.exit_status)
    message = (
        f"{kind}: {error} ({_place(error)}); this is a bug of uaccel: please report this line "
        "(UACCEL_DEBUG=1 shows the traceback)"
    )
    return _Failure("InternalError", message, InternalError.exit_status, prefix="internal error: ")


def _unnamed(error: OSError) -> str:
    """Guesses what could not be written if the system names no file.

    Code of commands only prints, and what they call writes files."""
    printed = _place(error).startswith(("uaccel/cli/", "outside"))
    return "standard output" if printed else f"a file in {tempfile.gettempdir()} or in the cache"


def _usage_message(error: typer.TyperException) -> str:
    """Says in one line what is wrong and where to read more, without the words that Typer begins with."""
    message = " ".join(error.format_message().split()).rstrip(".").replace(": Value error, ", ": ", 1)
    context = getattr(error, "ctx", None)
    return message if context is None else f"{message}; see '{context.command_path} --help'"


def _place(error: BaseException) -> str:
    """Returns the last line of uaccel's own code that the error passed."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(_PACKAGE)]
    if not ours:
        return "outside uaccel"
    return f"{Path(ours[-1].filename).relative_to(_PACKAGE.parent)}:{ours[-1].lineno}"


def fail(error: BaseException, as_json: bool) -> int:
    """Reports an error as one line, and returns the exit status."""
    return _fail(_describe(error), as_json)


def _fail(failure: _Failure, as_json: bool) -> int:
    output.say(f"{failure.prefix}{failure.message}")
    if as_json and not output.has_emitted():
        error = {"message": failure.message, "kind": failure.kind, "status": failure.status}
        output.write_json({"error": error})
    return failure.status
