"""Generated files as a user has them: unpacked from the archive, with nothing of the repository in reach."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.device.hostlib import STRICT
from support.models.networks import OWN
from uaccel.board import load_board
from uaccel.build.project import archive_overlay
from uaccel.codegen.options import CONSTANT_POOL, EmitOptions, read_pools
from uaccel.pipeline import Compiled, compile_model
from uaccel.runner.compiled import archive_of

# Beyond what must hold: what firmware teams switch on.
CAREFUL = (
    *("-Wshadow", "-Wundef", "-Wcast-align", "-Wcast-qual", "-Wdouble-promotion", "-Wfloat-equal", "-Wvla"),
    *("-Wmissing-prototypes", "-Wstrict-prototypes", "-Wpointer-arith", "-Wwrite-strings", "-Wunused-macros"),
)
WARNINGS = (*STRICT, *CAREFUL)


@functools.cache
def compiled(
    path: Path, *, name: str = "", workspace_pool: str = "", workspace_io: bool = False, constant_pool: str = ""
) -> Compiled:
    """A model, compiled once a process however many tests look at it; pools as they are typed, or several."""
    constants = read_pools(constant_pool.split(), CONSTANT_POOL)
    options = EmitOptions(read_pools(workspace_pool.split()), constants, workspace_io)
    return compile_model(path, board="host", name=name, options=options)


@functools.cache
def archive(path: Path, **options: Any) -> dict[str, bytes]:
    """The archive's files by path."""
    return archive_of(compiled(path, **options))


@functools.cache
def gesture_files() -> dict[str, bytes]:
    """What ``uaccel compile gesture.tflite --board host`` writes."""
    files = archive(OWN / "gesture.tflite")
    return files | archive_overlay(load_board("host"), files)


class Unpacked:
    """The files of one or several archives in one folder, as a firmware tree would hold them."""

    def __init__(self, folder: Path, *archives: dict[str, bytes]) -> None:
        self.folder = folder
        for files in archives:
            for name, content in files.items():
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)

    @property
    def include(self) -> Path:
        return self.folder / "codegen/host/include"

    @property
    def sources(self) -> list[Path]:
        """What a product compiles."""
        return sorted((self.folder / "codegen/host/src").glob("*.c"))

    @property
    def descriptions(self) -> list[Path]:
        return sorted((self.folder / "templates").glob("*.c"))

    def objects(self, *flags: str, compiler: str = "gcc") -> list[Path]:
        """Each source compiled on its own, with all warnings as errors."""
        targets = [self.folder / f"{source.stem}.o" for source in self.sources]
        for source, target in zip(self.sources, targets, strict=True):
            cc(source, *flags, "-c", include=[self.include], output=target, compiler=compiler)
        return targets

    def program(self, application: Path, *flags: str) -> Path:
        """An application linked with the models."""
        program = self.folder / application.stem
        cc(application, *self.sources, *flags, "-lm", include=[self.include], output=program)
        return program


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Lives as long as this process."""
    return tempfile.TemporaryDirectory(prefix="uaccel-test-")


@functools.cache
def objects(path: Path, compiler: str, level: str) -> list[Path]:
    """A model's objects, compiled once a process."""
    return Unpacked(Path(_folder().name) / path.stem / f"{compiler}{level}", archive(path)).objects(
        level, compiler=compiler
    )


def cc(
    *arguments: str | Path,
    include: Sequence[Path] = (),
    output: Path | None = None,
    compiler: str = "gcc",
    warnings: Sequence[str] = WARNINGS,
) -> None:
    """Compile without a single warning, or fail with what the compiler says."""
    command = [compiler, *warnings, *(f"-I{folder}" for folder in include), *map(str, arguments)]
    command += ["-o", str(output)] if output else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"{' '.join(command)}\n{done.stderr[:4000]}"


def cc_error(*arguments: str | Path, include: Sequence[Path] = ()) -> str:
    """What the compiler complains about; it must."""
    command = ["gcc", *WARNINGS, *(f"-I{folder}" for folder in include), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0, f"{' '.join(command)}: no error"
    return done.stderr


def run(program: Path, data: bytes = b"") -> bytes:
    """Standard output of a program that ends well and says nothing else."""
    done = subprocess.run([program], input=data, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout
