"""PyTorch and torchao: optional, heavy and talkative; imported when a model needs them, and in silence."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

from uaccel.errors import ModelError

_STDERR = 2
ADVICE = "install it: pip install 'uaccel[torch]'"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What PyTorch, torchao and TVM's importer say on the way is for their authors, not for our users."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), _nothing_on_stderr(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def _nothing_on_stderr() -> Iterator[None]:
    """Of what C++ writes there, too."""
    sys.stderr.flush()
    try:
        kept = os.dup(_STDERR)
    except OSError:  # it is closed: nobody hears anything
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, _STDERR)
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)
        os.close(nowhere)


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
            import torchao.quantization.pt2e  # noqa: F401
    except ImportError as error:
        raise ModelError(
            f"the model was quantised by torchao, whose operators cannot be imported ({error}); {ADVICE}"
        ) from error
