"""Defines ``uaccel export``, which writes a model as a library for a build system."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import MISSING, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from uaccel.cli.command import group
from uaccel.cli.options import ModelOptions
from uaccel.cli.output import emit, progress
from uaccel.cli.tables import show_layers, show_memory
from uaccel.codegen.export import FormatName
from uaccel.codegen.options import EmitOptions
from uaccel.frontend import SUFFIXES
from uaccel.runner.options import CompileOptions
from uaccel.util.files import require_new_folder, require_writable, write_atomically, write_folder, write_zip
from uaccel.util.option import argument, option

if TYPE_CHECKING:
    from rich.console import Console

    from uaccel.codegen.export.library import Export
    from uaccel.pipeline import Compiled, Progress
    from uaccel.runner.job import Job


ZIP: Final = ".zip"


class ExportCommand(ModelOptions):
    """Write a model as a library for a build system, with an example and a README. Several share one arena."""

    models: tuple[Path, ...] = argument(f"The model file ({SUFFIXES}), or several.", "MODEL...")
    to: FormatName = option(MISSING, f"One of: {', '.join(get_args(FormatName))}.", metavar="FORMAT")
    output: Path = option(
        MISSING, "The folder to write, a new one; a zip where it ends with '.zip'.", "-o", metavar="DIR"
    )
    inputs: Path | None = option(
        None, "The example's sample: one array per input (a ramp otherwise).", metavar="IN.npz"
    )
    compile: CompileOptions = group()
    emit: EmitOptions = group(only=("ram", "constants"))

    def run(self) -> None:
        jobs = self._jobs()
        (require_writable if self.output.suffix == ZIP else require_new_folder)(self.output, "-o")
        with progress() as step:
            from uaccel.codegen.export.formats import export_files
            from uaccel.codegen.export.library import Several
            from uaccel.report.compile_json import compile_report

            command = self._command(jobs)
            compiled = self._compiled(jobs, step, command)
            self._require_offload(compiled)
            step("execute the exact meaning of the sample")
            exports = [_export(one, job, self.inputs, command) for one, job in zip(compiled, jobs, strict=True)]
            step(f"write {self.output}")
            library = exports[0] if len(jobs) == 1 else Several(self._label, tuple(exports), jobs[0].board, command)
            files = export_files(library, self.to)
            _write(self.output, files)
        reports = [compile_report(one) for one in compiled]
        report = reports[0] if len(reports) == 1 else {"models": reports, "arena": library.arena}
        report |= {"format": self.to, "folder": str(self.output), "files": sorted(files)}
        emit(report, self.as_json, lambda console: _show(console, reports, report))

    @property
    def _label(self) -> str:
        """The name of a library of several models in C."""
        from uaccel.model import c_identifier

        return c_identifier(self.compile.name or "_".join(model.stem for model in self.models)).lower()

    def _jobs(self) -> list[Job]:
        """What to compile. Several models are given the array that all of them compute in."""
        jobs = [self.request(model, workspace_io=False).what() for model in self.models]
        if len(jobs) == 1:
            return jobs
        from uaccel.codegen.export.formats import require_room
        from uaccel.codegen.export.library import arena_of, require_names
        from uaccel.frontend.state import first_of_each, words_of_each
        from uaccel.model import c_identifier

        require_room(self.to, len(jobs))
        self._require_shared()
        require_names(self._label, [c_identifier(model.stem).lower() for model in self.models])
        names, given = [model.stem for model in self.models], self.compile.state_from
        states = words_of_each(self.compile.state, names)
        firsts = first_of_each(given, names) if given else [None] * len(names)
        options = [replace(job.options, arena=arena_of(self._label)) for job in jobs]
        return [
            replace(job, name="", options=own, state=words, state_from=first)
            for job, own, words, first in zip(jobs, options, states, firsts, strict=True)
        ]

    def _compiled(self, jobs: Sequence[Job], step: Progress, command: str) -> list[Compiled]:
        """Compiles all. Where ``--state auto`` is for several models, those without a state stay as they are."""
        from uaccel.codegen.export.library import listed
        from uaccel.errors import ModelError
        from uaccel.frontend.state import AUTO, FLAG, NoUsualNamesError

        found: list[Compiled] = []
        paired = False
        for job in jobs:
            try:
                found.append(job.compiled(step, again=lambda _: command))
                paired |= AUTO in job.state
            except NoUsualNamesError:
                if AUTO not in self.compile.state or len(jobs) == 1:
                    raise
                rest = tuple(word for word in job.state if word != AUTO)
                found.append(replace(job, state=rest).compiled(step, again=lambda _: command))
        if AUTO in self.compile.state and not paired:
            raise ModelError(
                f"{FLAG} {AUTO}: no output of {listed(model.stem for model in self.models)} is named as the next value "
                f"of an input; name a pair with {FLAG} NAME:OUT=IN"
            )
        return found

    def _command(self, jobs: Sequence[Job]) -> str:
        """Returns the command that does the same in the model files' folder."""
        asked = replace(jobs[0], state=self.compile.state, state_from=self.compile.state_from)
        words = shlex.split(asked.command("export"))
        words[2:3] = [job.model.name for job in jobs]
        named = ["--name", self.compile.name] if len(jobs) > 1 and self.compile.name else []
        return shlex.join([*words, *named, "--to", self.to, "-o", self.output.resolve().name])

    def _require_shared(self) -> None:
        """Raises an error for options that name something of one model."""
        from uaccel.errors import InputError

        said = {
            "--inputs": self.inputs,
            "--input-shape": self.compile.input_shapes,
        }
        for flag, value in said.items():
            if value:
                raise InputError(f"{flag} is about one model, and {len(self.models)} are given; export that one alone")

    def _require_offload(self, compiled: Sequence[Compiled]) -> None:
        """Refuses models that no accelerator computes a part of; among several, one may be the CPU's alone."""
        if all(self.engines.missing_offload(one) for one in compiled):
            self.engines.require_offload(compiled[0])


def _write(output: Path, files: dict[str, bytes]) -> None:
    """Writes a folder, or a zip with one folder at its root, so that unpacking it makes just that."""
    if output.suffix != ZIP:
        write_folder(output, files, "-o")
        return
    inside = {f"{output.stem}/{name}": content for name, content in files.items()}
    write_atomically(output, lambda stream: write_zip(stream, inside), "-o")


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


def _show(console: Console, reports: Sequence[dict[str, Any]], report: dict[str, Any]) -> None:
    for one in reports:
        show_layers(console, one)
        show_memory(console, one)
    folder = Path(report["folder"])
    if len(reports) > 1:
        console.print(f"  Arena     {report['arena']:,} bytes for all of them")
    console.print(f"  Export    {folder}, format {report['format']}, {len(report['files'])} files", soft_wrap=True)
    unpack = f"unzip {shlex.quote(str(folder))} && " if folder.suffix == ZIP else ""
    readme = Path(folder.stem) / "README.md" if unpack else folder / "README.md"
    console.print(f"  Next      {unpack}cat {shlex.quote(str(readme))}", soft_wrap=True)
