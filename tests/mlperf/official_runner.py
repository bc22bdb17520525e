"""MLPerf Tiny's own runner, of a checkout, against one serial port: ``official_runner.py FOLDER PORT ARGUMENTS...``.

What the runner asks this computer's USB is answered here: the port is the device of the file of devices. Libraries that
only its drawings and its interface boards need stand empty.
"""

from __future__ import annotations

import runpy
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from serial.tools import list_ports

USB = (0x0483, 0x374B)


def module(name: str, **content: object) -> None:
    """With those above it."""
    above, _, last = name.rpartition(".")
    if above and above not in sys.modules:
        module(above)
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__dict__.update(content)
    if above:
        setattr(sys.modules[above], last, sys.modules[name])


def area(labels: Any, scores: Any, multi_class: str = "") -> float:
    """Under the curve, of one score or of each class against all others, by pairs."""
    labels, scores = np.asarray(labels), np.asarray(scores)
    if scores.ndim == 1 or scores.shape[1] == 1:
        positive, negative = (scores.reshape(-1)[labels == label] for label in (1, 0))
        above = positive[:, None] - negative[None, :]
        return float(np.mean((above > 0) + 0.5 * (above == 0)))
    return float(np.mean([area(labels == label, scores[:, label]) for label in np.unique(labels)]))


def main(folder: str, port: str, *arguments: str) -> None:
    vendor, product = USB
    here = SimpleNamespace(vid=vendor, pid=product, device=port, description="")
    vars(list_ports)["comports"] = lambda include_links=False: [here]
    module("usb.core", find=lambda **_: [])
    module("matplotlib.pyplot")
    module("sklearn.metrics", roc_auc_score=area)
    sys.path.insert(0, folder)
    sys.argv = [f"{folder}/main.py", *arguments]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
