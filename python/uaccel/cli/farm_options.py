"""Options of those who go to a scheduler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="Run on the workers of this Dask scheduler (tcp://HOST:8786)."),
]
CaOption = Annotated[
    Path | None, typer.Option("--tls-ca", metavar="FILE", help="For tls://: the certificate of who signs.")
]
CertOption = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="For tls://: one's own certificate.")
]
KeyOption = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="For tls://: the key of it.")]
WaitOption = Annotated[
    float, typer.Option("--wait", min=1, metavar="SECONDS", help="How long rows wait for a worker that can run them.")
]
SecondsOption = Annotated[
    float | None, typer.Option("--limit-seconds", min=1, metavar="N", help="What one run may take, with its build.")
]
MemoryOption = Annotated[
    str | None, typer.Option("--limit-memory", metavar="SIZE", help="What the process of one run may take, as 2G.")
]
