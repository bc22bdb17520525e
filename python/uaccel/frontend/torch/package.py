"""PyTorch and torchao: optional, heavy and talkative; imported when a model needs them, and in silence."""

from __future__ import annotations

import importlib
from typing import Any

from uaccel.basics.quiet import quiet
from uaccel.errors import ModelError

ADVICE = (
    "install its build for CPUs: pip install torch --index-url https://download.pytorch.org/whl/cpu "
    "&& pip install 'uaccel[torch]'"
)


def torch_package() -> Any:
    """PyTorch, with the operators of quantised programs (``torch.ops.quantized_decomposed``) known to it."""
    try:
        with quiet():
            import torch
            import torch.ao.quantization.fx._decomposed  # registers them
            import torch.export
    except ImportError as error:
        raise ModelError(f"reading .pt2 files takes PyTorch, which cannot be imported ({error}); {ADVICE}") from error
    return torch


def register_torchao() -> None:
    """Make the operators ``torch.ops.torchao`` known."""
    try:
        with quiet():
            importlib.import_module("torchao.quantization.pt2e")
    except ImportError as error:
        raise ModelError(
            f"the model was quantised by torchao, whose operators cannot be imported ({error}); {ADVICE}"
        ) from error
