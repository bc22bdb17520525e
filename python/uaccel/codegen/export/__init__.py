"""Exports a model for other build systems; each format is a module of its name, with an underscore for each hyphen."""

from __future__ import annotations

from typing import Literal

# The formats, in the order in which they are told.
FormatName = Literal["c", "single", "cmake", "make", "arduino", "platformio", "zephyr", "esp-idf", "cmsis-pack"]
