"""Exports a model to a format: lays out its files as the format's row says, and adds what only that format has."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePosixPath

from uaccel.codegen.export.base import Files, Format, below, desk, device_table, hardware, readme
from uaccel.codegen.export.example import main_source, sample_header
from uaccel.codegen.export.library import Library
from uaccel.codegen.export.sbom import FILE, sbom
from uaccel.errors import ModelError


def format_of(name: str) -> Format:
    row: Format = import_module(f"{__package__}.{name.replace('-', '_')}").FORMAT
    return row


def require_room(name: str, models: int) -> None:
    """Raises an error if a format holds one model and there are several."""
    alone = format_of(name).alone
    if alone and models > 1:
        raise ModelError(f"--to {name} {alone}, not {models}; export each by itself, or take --to c, cmake or make")


def export_files(export: Library, name: str) -> dict[str, bytes]:
    """All files of an export, its bill of materials included, as path in the folder -> content."""
    row = format_of(name)
    if export.binaries and not row.assembles:
        raise ModelError(
            f"--to {name} takes C alone, and the constants, {export.weight_bytes:,} bytes, are a binary file that an "
            "assembler file includes; add --constants c, or choose another format"
        )
    files = _laid_out(export, row)
    rest = row.rest(export, files)
    texts = files | rest.files | {"README.md": readme(export, rest)}
    content = {path: text.encode() for path, text in texts.items()}
    folder = PurePosixPath(row.root.format(name=export.name), row.src or "")
    content |= {str(folder / file): data for file, data in export.binaries.items()}
    return content | {FILE: sbom(export, content)}


def _laid_out(export: Library, row: Format) -> Files:
    """The files that every format has, in the folders that a row names."""
    root = row.root.format(name=export.name)
    samples = {name: text for model in export.models for name, text in sample_header(model).items()}
    example = {} if row.main is None else {"main.c": main_source(export, row.main)}
    files = below(f"{root}{row.include}", export.public_headers) | below(row.example, example | samples)
    if row.src is not None:
        files |= below(f"{root}{row.src}", {**export.private_headers, **export.sources})
    if row.apart:
        return files | desk(export) | below("hardware", hardware(export) | device_table(export))
    return files | below(f"{root}{row.src}", hardware(export)) | below(row.example, device_table(export))
