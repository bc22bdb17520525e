"""Sound ONNX models for the mutants of ``onnx_mutants/`` to be made of."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from support.models.onnx_islands import CASES
from support.models.onnx_models import Graph
from support.models.onnx_networks import convolutional, quantised, transformer, unet


def own() -> list[Any]:
    """Quantised operators of many kinds, small networks, a branch, shapes that are computed."""
    found = []
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        path = Path(folder) / "seed.onnx"
        for case in CASES:
            graph = Graph()
            case.build(graph)
            found.append(onnx.load(graph.save(path)))
    found += [net.model() for net in (convolutional(), transformer(), unet(), transformer("batch", "length"))]
    return found


def quantised_networks() -> list[Any]:
    """As ONNX Runtime's quantiser writes them."""
    with tempfile.TemporaryDirectory(prefix="uaccel-") as folder:
        return [
            onnx.load(quantised(convolutional(), Path(folder), form, kind, per_channel=form == "QDQ"))
            for form in ("QDQ", "QOperator")
            for kind in ("QUInt8", "QInt8")
        ]


def official() -> list[Any]:
    """The models of the onnx package's own tests of operators."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        return [test.model for test in load_model_tests(kind="node") if test.model is not None]
