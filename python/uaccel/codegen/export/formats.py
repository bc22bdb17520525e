"""Lists the formats that models are exported to, and exports to one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from uaccel.codegen.export.arduino import arduino
from uaccel.codegen.export.base import Export, Packager
from uaccel.codegen.export.cmake import cmake
from uaccel.codegen.export.cmsis_pack import cmsis_pack
from uaccel.codegen.export.esp_idf import esp_idf
from uaccel.codegen.export.flat import flat
from uaccel.codegen.export.make import make
from uaccel.codegen.export.platformio import platformio
from uaccel.codegen.export.sbom import FILE, sbom
from uaccel.codegen.export.single import single
from uaccel.codegen.export.zephyr import zephyr


@dataclass(frozen=True)
class ExportFormat:
    """Describes a format; ``about`` says in a few words what it gives."""

    about: str
    package: Packager


FORMATS: Final[dict[str, ExportFormat]] = {
    "c": ExportFormat("every file in one folder", flat),
    "single": ExportFormat("one C file and one header", single),
    "cmake": ExportFormat("a library target with an install", cmake),
    "make": ExportFormat("a static library by a Makefile", make),
    "arduino": ExportFormat("a library for the Arduino IDE", arduino),
    "platformio": ExportFormat("a project with a library", platformio),
    "zephyr": ExportFormat("a module and an application", zephyr),
    "esp-idf": ExportFormat("a component and a project", esp_idf),
    "cmsis-pack": ExportFormat("a pack with one component", cmsis_pack),
}


def export_files(export: Export, name: str) -> dict[str, bytes]:
    """All files of an export, its bill of materials included, as path in the folder -> content."""
    files = {path: text.encode() for path, text in FORMATS[name].package(export).items()}
    return files | {FILE: sbom(export, files)}
