"""ONNX models that are wrong by structure: each differs from a sound one by a few hostile changes."""

from __future__ import annotations

import random
from collections.abc import Sequence

from support.hostile.onnx_mutants import nodes, attributes, tensors, whole  # isort: skip - a seed counts them in this order
from support.hostile.onnx_mutants.mutator import MUTATIONS, UNFIT, WEIGHTS, Model, Mutator

__all__ = ["attributes", "mutant", "nodes", "tensors", "whole"]


def mutant(model: Model, seed: int, others: Sequence[Model] = ()) -> bytes:
    """The bytes of a model with one to four changes, the same for the same seed."""
    rng = random.Random(seed)
    mutator = Mutator(model, rng, others)
    for _ in range(rng.choice((1, 1, 1, 1, 2, 2, 3))):
        (change,) = rng.choices(MUTATIONS, WEIGHTS)
        try:
            change(mutator)
        except UNFIT:
            continue
    data = bytearray(mutator.model.SerializeToString())
    if rng.random() < 0.04:
        for _ in range(rng.choice((1, 2, 8))):
            data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return bytes(data)
