"""The formats that models are exported to: a row each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from uaccel.packagers.arduino import arduino
from uaccel.packagers.cmake import cmake
from uaccel.packagers.cmsis_pack import cmsis_pack
from uaccel.packagers.esp_idf import esp_idf
from uaccel.packagers.export import Export, Packager
from uaccel.packagers.flat import flat
from uaccel.packagers.make import make
from uaccel.packagers.platformio import platformio
from uaccel.packagers.sbom import FILE, sbom
from uaccel.packagers.single import single
from uaccel.packagers.zephyr import zephyr


@dataclass(frozen=True)
class Format:
    """``about``: what it gives, in a few words."""

    about: str
    package: Packager


FORMATS: Final[dict[str, Format]] = {
    "c": Format("every file in one folder", flat),
    "single": Format("one C file and one header", single),
    "cmake": Format("a library target with an install", cmake),
    "make": Format("a static library by a Makefile", make),
    "arduino": Format("a library for the Arduino IDE", arduino),
    "platformio": Format("a project with a library", platformio),
    "zephyr": Format("a module and an application", zephyr),
    "esp-idf": Format("a component and a project", esp_idf),
    "cmsis-pack": Format("a pack with one component", cmsis_pack),
}


def export_files(export: Export, name: str) -> dict[str, bytes]:
    """Path in the folder -> content."""
    files = {path: text.encode() for path, text in FORMATS[name].package(export).items()}
    return files | {FILE: sbom(export, files)}
