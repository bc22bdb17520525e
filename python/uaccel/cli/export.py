"""Defines ``uaccel export``, which writes a model as a library for a build system."""

from __future__ import annotations

import shlex
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from uaccel.cli.command import group
from uaccel.cli.options import ModelCommand
from uaccel.cli.output import emit, progress
from uaccel.cli.tables import show_layers, show_memory
from uaccel.codegen.export import FormatName
from uaccel.codegen.options import EmitOptions
from uaccel.runner.options import CompileOptions
from uaccel.util.files import require_new_folder, require_writable, write_atomically, write_folder, write_zip
from uaccel.util.option import option

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.codegen.export.base import Export
    from uaccel.pipeline import Compiled
    from uaccel.runner.job import Job


ZIP: Final = ".zip"


@dataclass(frozen=True, kw_only=True)
class ExportCommand(ModelCommand):
    """Write a model as a library for a build system, with an example and a README."""

    to: FormatName = option(MISSING, f"One of: {', '.join(get_args(FormatName))}.", metavar="FORMAT")
    output: Path = option(
        MISSING, "The folder to write, a new one; a zip where it ends with '.zip'.", "-o", metavar="DIR"
    )
    inputs: Path | None = option(
        None, "The example's sample: one array per input (a ramp otherwise).", metavar="IN.npz"
    )
    compile: CompileOptions = group()
    emit: EmitOptions = group(only=("ram",))

    def run(self) -> None:
        request = self.request(self.model, workspace_io=False)
        (require_writable if self.output.suffix == ZIP else require_new_folder)(self.output, "-o")
        with progress() as step:
            from uaccel.codegen.export.formats import export_files
            from uaccel.report.compile_json import compile_report

            job = request.what()
            compiled = job.compiled(step)
            request.engines.require_offload(compiled)
            step("execute the exact meaning of the sample")
            export = _export(compiled, job, self.inputs, _command(job, self.to, self.output))
            step(f"write {self.output}")
            files = export_files(export, self.to)
            _write(self.output, files)
        written = {"format": self.to, "folder": str(self.output), "files": sorted(files)}
        report = compile_report(compiled) | written
        emit(report, self.as_json, lambda console: _show(console, report))


def _write(output: Path, files: dict[str, bytes]) -> None:
    """Writes a folder, or a zip with one folder at its root, so that unpacking it makes just that."""
    if output.suffix != ZIP:
        write_folder(output, files, "-o")
        return
    inside = {f"{output.stem}/{name}": content for name, content in files.items()}
    write_atomically(output, lambda stream: write_zip(stream, inside), "-o")


def _command(job: Job, to: FormatName, output: Path) -> str:
    """Returns the command that does the same in the model file's folder."""
    words = shlex.split(job.command("export"))
    words[2] = job.model.name
    return shlex.join([*words, "--to", to, "-o", output.resolve().name])


def _export(compiled: Compiled, job: Job, inputs: Path | None, command: str) -> Export:
    from uaccel.errors import InputError
    from uaccel.runner.compiled import exported
    from uaccel.runner.firmware import tensor_types
    from uaccel.runner.samples import default_samples
    from uaccel.session.tensors import load_inputs

    types = tensor_types(compiled.model.signature.inputs)
    samples = load_inputs(inputs, types) if inputs is not None else default_samples(types, 1)
    if len(samples) != 1:
        raise InputError(
            f"{inputs} holds {len(samples)} samples, and the example feeds one; give an array of one sample"
        )
    return exported(compiled, job.board, samples[0], command)


def _show(console: Console, report: dict[str, Any]) -> None:
    show_layers(console, report)
    show_memory(console, report)
    folder = Path(report["folder"])
    console.print(f"  Export    {folder}, format {report['format']}, {len(report['files'])} files", soft_wrap=True)
    unpack = f"unzip {shlex.quote(str(folder))} && " if folder.suffix == ZIP else ""
    readme = Path(folder.stem) / "README.md" if unpack else folder / "README.md"
    console.print(f"  Next      {unpack}cat {shlex.quote(str(readme))}", soft_wrap=True)
