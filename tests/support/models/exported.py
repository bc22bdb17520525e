"""PyTorch modules as ``.pt2`` files, and what they compute: the oracle of the PyTorch front end."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from uaccel.frontend.qdq.rewrite import integers
from uaccel.frontend.torch.importer import import_torch
from uaccel.frontend.torch.isolated import packed, unpacked
from uaccel.model import ImportedModel
from uaccel.tvm_api import structural_equal
from uaccel.util.files import quiet

torch: Any = pytest.importorskip("torch")
Array = NDArray[Any]


class Net(torch.nn.Module):  # type: ignore[misc]
    """A module of this function: ``compute(*inputs, *parts)``. Its inputs are called ``x_0``, ``x_1``, ..."""

    def __init__(self, compute: Callable[..., Any], *parts: Any) -> None:
        super().__init__()
        self.compute = compute
        self.parts = torch.nn.ModuleList(parts)

    def forward(self, *x: Any) -> Any:
        return self.compute(*x, *self.parts)


def random(*shape: int, seed: int = 0) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def settled(module: Any) -> Any:
    """In eval mode, with statistics and factors that are not those of a new module."""
    torch.manual_seed(1)
    for part in module.modules():
        if getattr(part, "running_mean", None) is not None:
            part.running_mean.uniform_(-1, 1)
            part.running_var.uniform_(0.5, 2)
        if getattr(part, "affine", False):
            part.weight.data.uniform_(0.5, 2)
            part.bias.data.uniform_(-1, 1)
    return module.eval()


def exported(module: Any, inputs: Sequence[Any], **options: Any) -> Any:
    with quiet():
        return torch.export.export(module, tuple(inputs), **options)


def save(program: Any, path: Path) -> Path:
    with quiet():
        torch.export.save(program, path)
    return path


def imported(path: Path) -> ImportedModel:
    """Without a process for it, which takes seconds; but through the data that would come out of one."""
    model = import_torch(path)
    assert model.file is not None
    document, tensors = packed(model)
    crossed = unpacked(json.loads(json.dumps(document)), tensors, model.file)
    assert structural_equal(crossed.module, model.module)
    assert replace(crossed, module=None) == replace(model, module=None)
    return integers(crossed)


def computed(program: Any, inputs: Sequence[Any]) -> list[Array]:
    """The oracle: the program as PyTorch executes it."""
    with torch.no_grad():
        result = program.module()(*(value.clone() for value in inputs))
    return [np.asarray(value) for value in (result if isinstance(result, (tuple, list)) else (result,))]
