"""Options about what stands in for an accelerator's hardware."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Device(str, Enum):
    """What answers to drivers."""

    model = "model"
    rtl = "rtl"


DeviceOption = Annotated[
    Device, typer.Option("--device", help="Behind the drivers: models of the devices, or their Verilog, verilated.")
]
WavesOption = Annotated[
    Path | None, typer.Option("--waves", metavar="FILE.fst|FILE.vcd", help="Write the waveform of the RTL.")
]
WavesLayerOption = Annotated[
    str, typer.Option("--waves-layer", metavar="LAYER", help="Of the waveform only what belongs to this layer.")
]
CoverageOption = Annotated[
    Path | None,
    typer.Option("--coverage", metavar="DIR", help="Add what of the RTL was exercised, for verilator_coverage."),
]
