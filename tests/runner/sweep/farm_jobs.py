"""What synthetic rows do on a worker: their tags say it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from uaccel.runner.sweep.row_result import RowJob


def act(job: RowJob) -> Any:
    """Marks in a folder tell when a job began, and that it ended."""
    tags = job.row["tags"]
    if "folder" in tags:
        with (Path(tags["folder"]) / f"{tags['number']}.begun").open("a") as stream:
            stream.write(f"{os.getppid()}\n")
    time.sleep(tags.get("seconds", 0))
    if tags.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if "write" in tags:
        Path(tags["folder"], "written").write_bytes(bytes(tags["write"]))
    if "eat" in tags:
        return {"ate": len(bytearray(tags["eat"]))}
    if "folder" in tags:
        with (Path(tags["folder"]) / f"{tags['number']}.ended").open("a") as stream:
            stream.write("ended\n")
    return {"number": tags["number"], "model": job.row["model"]}
