"""Exports a model to a format: lays out its files as the format's row says, and adds what only that format has."""

from __future__ import annotations

from importlib import import_module

from uaccel.codegen.export.base import Export, Files, Format, below, desk, device_table, hardware, readme
from uaccel.codegen.export.example import main_source, sample_header
from uaccel.codegen.export.sbom import FILE, sbom


def export_files(export: Export, name: str) -> dict[str, bytes]:
    """All files of an export, its bill of materials included, as path in the folder -> content."""
    row: Format = import_module(f"{__package__}.{name.replace('-', '_')}").FORMAT
    files = _laid_out(export, row)
    rest = row.rest(export, files)
    texts = files | rest.files | {"README.md": readme(export, rest)}
    content = {path: text.encode() for path, text in texts.items()}
    return content | {FILE: sbom(export, content)}


def _laid_out(export: Export, row: Format) -> Files:
    """The files that every format has, in the folders that a row names."""
    root = row.root.format(name=export.name)
    example = {} if row.main is None else {"main.c": main_source(export, row.main)}
    files = below(f"{root}{row.include}", export.public_headers) | below(row.example, example | sample_header(export))
    if row.src is not None:
        files |= below(f"{root}{row.src}", {**export.private_headers, **export.sources})
    if row.apart:
        return files | desk(export) | below("hardware", hardware(export) | device_table(export))
    return files | below(f"{root}{row.src}", hardware(export)) | below(row.example, device_table(export))
