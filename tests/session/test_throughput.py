"""The share of a serial line that is payload, as benchmarks/throughput.py measures it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
ENOUGH = 0.85


@pytest.mark.slow
def test_the_line_carries_payload_most_of_the_time() -> None:
    """The simulation is exact: what it measures is what is stored."""
    script = BENCHMARKS / "throughput.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    stored = json.loads((BENCHMARKS / "throughput.json").read_text())
    for name, row in stored.items():
        share = row["together"] if name.startswith("both") else max(row["to_device"], row["to_host"])
        small = name.startswith(("490", "640"))
        assert share >= ENOUGH or small, f"{name}: {share:.1%}"
    assert {rate for rate in ("115200", "921600") if any(rate in name for name in stored)} == {"115200", "921600"}
