"""Exports format ``cmsis-pack``: a pack with one component and an example, for tools that take CMSIS-Packs."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import escape, quoteattr

from uaccel.codegen.export.base import ROWS, Files, Format, Rest, embedded_notes, sized
from uaccel.codegen.export.library import VERSION, Library

VENDOR: Final = "uaccel"
DATE: Final = "2026-01-01"  # The schema wants one; the same model must give the same bytes, so it is always this one.


def _rest(export: Library, files: Files) -> Rest:
    """The rest of the pack's content; zipped under the pack's name, the folder is the pack."""
    pack = f"{VENDOR}.{export.name}"
    file = f"{pack}.{VERSION}.pack"
    commands = [
        f"python3 -m zipfile -c {file} \\",
        f"  {pack}.pdsc LICENSE.txt README.md include src example",
        f"python3 -m zipfile -t {file}",
    ]
    contents = [*ROWS, ("example/", "a `main` that feeds a sample"), (f"{pack}.pdsc", "what the pack holds, for tools")]
    notes = [f"The command makes the pack; `cpackget add {file}` or an IDE takes it.", *embedded_notes(export)]
    return Rest({"LICENSE.txt": LICENSE, f"{pack}.pdsc": _description(export, files)}, commands, contents, notes)


FORMAT = Format(_rest, assembles=False)

LICENSE: Final = """\
The model's constants belong to whoever made the model. Kernels, drivers and generated code come from uaccel, under the
Apache License, version 2.0: https://www.apache.org/licenses/LICENSE-2.0
"""


def _description(export: Library, files: Files) -> str:
    rows = [_file(export, name) for name in sorted(files) if name.startswith(("include/", "src/"))]
    application = [
        f'        <file category="source" name={quoteattr(name)} attr="template" select="Example that feeds a sample"/>'
        for name in sorted(files)
        if name.startswith("example/")
    ]
    listed = "\n".join(rows + application)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<package schemaVersion="1.7.7" xmlns:xs="http://www.w3.org/2001/XMLSchema-instance"
         xs:noNamespaceSchemaLocation="PACK.xsd">
  <vendor>{VENDOR}</vendor>
  <name>{export.name}</name>
  <description>{escape(export.title)}: {escape(sized(export))}</description>
  <url></url>
  <license>LICENSE.txt</license>
  <releases>
    <release version="{VERSION}" date="{DATE}">Exported by uaccel.</release>
  </releases>
  <components>
    <component Cclass="Machine Learning" Cgroup="Model" Csub="{_short(export)}" Cversion="{VERSION}">
      <description>{escape(export.title)}</description>
      <files>
        <file category="include" name="include/"/>
        <file category="include" name="src/"/>
{listed}
      </files>
    </component>
  </components>
</package>
"""


def _short(export: Library) -> str:
    """The model's name as the schema takes it: 32 characters, the first one a letter or a digit."""
    return export.label.lstrip("_")[:32] or "model"


def _file(export: Library, name: str) -> str:
    category = "source" if name.endswith(".c") else "header"
    return f'        <file category="{category}" name={quoteattr(name)}/>'
