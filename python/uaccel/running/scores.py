"""How good a model is over a set: how often its largest output is the label, and the area under the ROC curve."""

from __future__ import annotations

import numpy as np

from uaccel.model import Array


def correct(scores: Array, labels: Array) -> int | None:
    """How many samples have their label as the largest output; the first of equal ones. None of a single score."""
    return int((scores.argmax(axis=1) == labels).sum()) if scores.shape[1] > 1 else None


def area(scores: Array, labels: Array) -> float | None:
    """Under the ROC curve. Of several classes: each against the rest, their mean. None where a class has no sample, or
    all of them."""
    if scores.shape[1] == 1:
        return _area(scores[:, 0], labels == 1)
    if scores.shape[1] == 2:
        return _area(scores[:, 1] - scores[:, 0], labels == 1)
    areas = [_area(scores[:, i], labels == i) for i in range(scores.shape[1])]
    known = [found for found in areas if found is not None]
    return float(np.mean(known)) if len(known) == len(areas) else None


def _area(scores: Array, positive: Array) -> float | None:
    """How often a positive sample has the greater score of two; half for a tie."""
    many, others = int(positive.sum()), int((~positive).sum())
    if not many or not others:
        return None
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    ranks = (ends - (counts - 1) / 2)[inverse]  # the mean of the ranks of equal ones
    return float((ranks[positive].sum() - many * (many + 1) / 2) / (many * others))
