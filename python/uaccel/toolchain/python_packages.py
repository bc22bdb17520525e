"""The Python packages that uaccel uses, and how they stand; ``pyproject.toml`` has the same requirements."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uaccel
from uaccel.toolchain.check import Check, Status
from uaccel.toolchain.version import Version, is_before, parse_version, show_version
from uaccel.version import __version__

PYTHON_MINIMUM: Final[Version] = (3, 10)


@dataclass(frozen=True)
class PythonPackage:
    """A package, with the range of versions that works."""

    requirement: str
    """As pip takes it: ``apache-tvm>=0.27,<0.28``."""
    module: str
    needed_for: str
    required: bool

    @property
    def name(self) -> str:
        """Its name on the package index."""
        return re.split(r"[<>=]", self.requirement)[0]

    def bound(self, operator: str) -> Version | None:
        """The version behind ``>=`` or ``<`` in the requirement."""
        match = re.search(rf"{operator}([0-9.]+)", self.requirement)
        return parse_version(match[1]) if match else None


PYTHON_PACKAGES: Final = (
    PythonPackage("apache-tvm>=0.27,<0.28", "tvm", "compiling models", required=True),
    PythonPackage("numpy>=1.26", "numpy", "compiling models", required=True),
    PythonPackage("tflite>=2.18", "tflite", "reading TFLite models", required=True),
    PythonPackage("onnx>=1.17", "onnx", "reading ONNX models", required=False),
    PythonPackage("tflite-micro>=0.dev20240101", "tflite_micro", "tests: the reference", required=False),
    PythonPackage("ai-edge-litert>=2.0", "ai_edge_litert", "tests: a second opinion", required=False),
    PythonPackage("onnx>=1.17", "onnx", "quantising ONNX models", required=False),
    PythonPackage("onnxruntime>=1.20", "onnxruntime", "quantising ONNX models", required=False),
    PythonPackage("torch>=2.13", "torch", "reading PyTorch models", required=False),
    PythonPackage("torchao>=0.18", "torchao", "reading PyTorch models", required=False),
)


def check_python() -> Check:
    """The interpreter itself."""
    old = is_before(sys.version_info[:3], PYTHON_MINIMUM)
    wanted = f"{show_version(PYTHON_MINIMUM)} or later"
    return Check(
        name="python",
        status="too old" if old else "ok",
        version=show_version(sys.version_info[:3]),
        path=sys.executable,
        required=True,
        needed_for="everything",
        detail=f"wanted {wanted}" if old else None,
        fix=f"install Python {wanted} and uaccel under it" if old else None,
    )


def check_uaccel() -> Check:
    """This very package: which one runs."""
    path = str(Path(uaccel.__path__[0]).resolve())
    return Check("uaccel", "ok", __version__, path, True, "everything", None, None)


def check_package(package: PythonPackage) -> Check:
    """How one package stands; a required one is imported too, in a process of its own."""
    try:
        version = importlib.metadata.version(package.name)
        path = str(importlib.metadata.distribution(package.name).locate_file(package.module))
    except importlib.metadata.PackageNotFoundError:
        version, path = None, None
    status, detail = _judge(package, version)
    return Check(
        name=package.name,
        status=status,
        version=version,
        path=path,
        required=package.required,
        needed_for=package.needed_for,
        detail=detail,
        fix=None if status == "ok" else _pip_install(package, status),
    )


def _judge(package: PythonPackage, version: str | None) -> tuple[Status, str | None]:
    if version is None:
        return "missing", "not installed"
    parsed, low, high = parse_version(version) or (), package.bound(">="), package.bound("<")
    wanted = f"version {version}; wanted {package.requirement}"
    if low and is_before(parsed, low):
        return "too old", wanted
    if high and not is_before(parsed, high):
        return "too new", wanted
    complaint = _import_error(package.module) if package.required else None
    return ("ok", None) if complaint is None else ("broken", complaint)


def _import_error(module: str) -> str | None:
    """The last line that Python says when it cannot import a module."""
    command = [sys.executable, "-c", f"import {module}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return f"import {module} takes over two minutes"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines()
    return f"import {module} fails: {lines[-1] if lines else f'exit status {done.returncode}'}"


def _pip_install(package: PythonPackage, status: Status) -> str:
    force = ["--force-reinstall"] if status == "broken" else []
    return shlex.join([sys.executable, "-m", "pip", "install", *force, package.requirement])
