"""In which order kernels are asked: by the rank that each offer states, whatever was imported first."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from uaccel.errors import InternalError
from uaccel.kernels import registry
from uaccel.ops.conv import Conv2d
from uaccel.ops.operator import Site

BANDS = {"helium": 100, "dsp": 200, "rvv": 300}
PRINT = """
import importlib, json, pkgutil, sys
package = importlib.import_module("uaccel.kernels")
names = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
for name in list(sys.modules):  # again, from the last one to the first
    if name.startswith("uaccel.kernels"):
        del sys.modules[name]
sys.modules["uaccel.kernels"] = package
for name in reversed(names):
    importlib.import_module(f"uaccel.kernels.{name}")
offers = sys.modules["uaccel.kernels.registry"]._OFFERS
print(json.dumps({name: [[one.rank, one.maker.__qualname__] for one in each] for name, each in offers.items()}))
"""


def test_ranks_lie_in_the_band_of_what_the_cpu_needs() -> None:
    """A CPU with Helium has the DSP extension, too, and any CPU can run what needs neither."""
    for name, offers in registry._OFFERS.items():
        for offer in offers:
            needed = offer.requires[0] if offer.requires else ""
            late = name in ("batch_matmul", "lstm")  # int16 comes after int8, and no layer is both
            assert 0 <= offer.rank - BANDS.get(needed, 400) < (200 if late else 100), (name, offer)


def test_the_order_of_imports_decides_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PRINT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = {name: [[one.rank, one.maker.__qualname__] for one in offers] for name, offers in registry._OFFERS.items()}
    assert json.loads(done.stdout) == here


def test_two_offers_of_one_rank_are_refused() -> None:
    def another(_site: Site[Any]) -> None:
        return None

    (first, *_) = registry._OFFERS[Conv2d.name]
    with pytest.raises(InternalError) as caught:
        registry.offers(Conv2d, ("helium",), rank=first.rank)(another)
    assert str(caught.value) == (
        f"{first.maker.__module__}.{first.maker.__qualname__} and {__name__}.{another.__qualname__} both offer conv2d "
        f"at rank {first.rank}; give one of them another"
    )
