"""What tests of models and of accelerators import: ``docs/testing.md``, ``docs/bring-your-accelerator.md``.

- :class:`BoardUnderTest` is the fixture ``uaccel_board``, :class:`Outcome` what its ``check`` gives.
- :class:`DriverUnderTest` is a driver and the model of its device in this process; :func:`compile_with_each` has every
  compiler read their C, :func:`run_sanitized` runs a C program over the model, :func:`host_hal` is what else such a
  program is linked with. :class:`DeviceLibrary` is a model or RTL alone; it tells :class:`EngineSpan`.
- :func:`check_accelerator` holds model and RTL to what the accelerator means, on random layers.
- :func:`example` makes an :class:`Example`, a region and what it means; :func:`operator` has the operators by name,
  :class:`Layers` random calls of them. :func:`multiply_by_quantized_multiplier` is how they scale.
- :func:`compile_model` compiles a model, :func:`exact_layers` tells what its layers should compute, and
  :class:`Executor` executes a module.

They are loaded when they are first asked for: pytest loads this package's plugin in every run, of whatever project.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from uaccel.ops.fixedpoint import multiply_by_quantized_multiplier
    from uaccel.pipeline import compile_model
    from uaccel.runner.verify import exact_layers
    from uaccel.testing.accelerator_check import check_accelerator
    from uaccel.testing.board import BoardUnderTest
    from uaccel.testing.device_library import DeviceLibrary, EngineSpan
    from uaccel.testing.driver import DriverUnderTest, compile_with_each, host_hal, run_sanitized
    from uaccel.testing.layers import Example, Layers, example, operator
    from uaccel.testing.outcome import Outcome
    from uaccel.tvm_api.executor import Executor

__all__ = [
    "BoardUnderTest",
    "DeviceLibrary",
    "DriverUnderTest",
    "EngineSpan",
    "Example",
    "Executor",
    "Layers",
    "Outcome",
    "check_accelerator",
    "compile_model",
    "compile_with_each",
    "exact_layers",
    "example",
    "host_hal",
    "multiply_by_quantized_multiplier",
    "operator",
    "run_sanitized",
]

_HOMES: Final = {
    "ops.fixedpoint": ("multiply_by_quantized_multiplier",),
    "pipeline": ("compile_model",),
    "runner.verify": ("exact_layers",),
    "testing.accelerator_check": ("check_accelerator",),
    "testing.device_library": ("DeviceLibrary", "EngineSpan"),
    "testing.driver": ("DriverUnderTest", "compile_with_each", "host_hal", "run_sanitized"),
    "testing.layers": ("Layers", "Example", "example", "operator"),
    "testing.outcome": ("Outcome",),
    "testing.board": ("BoardUnderTest",),
    "tvm_api.executor": ("Executor",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"uaccel.{module}"), name)
    raise AttributeError(f"module 'uaccel.testing' has no attribute {name!r}")
