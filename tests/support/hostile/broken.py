"""A zoo of accelerators that are broken on purpose: the bundled ones, each with one fault that designers make."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from uaccel.util.files import data_dir


@dataclass(frozen=True)
class Broken:
    """In ``file`` of ``accelerator`` the text ``right`` becomes ``wrong``; it shows in operators of ``kinds``."""

    fault: str
    accelerator: str
    file: str
    right: str
    wrong: str
    kinds: tuple[str, ...] = ("conv2d", "depthwise_conv2d", "fully_connected")

    def make(self, folder: Path) -> Path:
        """The broken accelerator's folder."""
        made = folder / "broken"
        shutil.copytree(data_dir("accelerators") / self.accelerator, made, ignore=shutil.ignore_patterns("__pycache__"))
        path = made / self.file
        text = path.read_text()
        assert text.count(self.right) == 1, f"{self.file} of {self.accelerator} has changed: plant the fault anew"
        path.write_text(text.replace(self.right, self.wrong))
        return made


CONVOLVE, OUTPUT = "device/npu_convolve.c", "device/npu_output.c"
FPGA, DRIVER = "device/nuc_fpga_device.c", "driver/nuc_fpga.c"
COUNTED = "static int32_t run(const struct job *job)\n{"
EXPAND = "            Operation(name, name, convolve, can_convolve, cycles, EXPAND, roundings=ROUNDINGS)"

ZOO = [
    Broken(
        "a row of padding too little",
        "npu",
        CONVOLVE,
        "row < 0 || row >= w->input_rows",
        "row < 0 || row > w->input_rows",
        ("conv2d",),
    ),
    Broken(
        "another stride",
        "npu",
        CONVOLVE,
        "(int64_t)row * w->stride_y",
        "(int64_t)row * (w->stride_y > 1 ? w->stride_y : 2)",
        ("conv2d",),
    ),
    Broken("another zero point", "npu", OUTPUT, "moved = value + offset;", "moved = value + offset + 1;"),
    Broken(
        "ties rounded down",
        "npu",
        OUTPUT,
        "(magnitude + half) >>",
        "(magnitude + half - (half > 0)) >>",
    ),
    Broken(
        "no last channel",
        "npu",
        CONVOLVE,
        "channel < w.channels; ++",
        "channel + (w.channels > 1) < w.channels; ++",
    ),
    Broken(
        "no last row",
        "npu",
        CONVOLVE,
        "pixel < w.rows * w.columns; ++pixel",
        "pixel < (w.rows - (w.rows > 1)) * w.columns; ++pixel",
        ("conv2d",),
    ),
    Broken(
        "weights of the next filter",
        "npu",
        CONVOLVE,
        "block * steps * NPU_TILE + lane * NPU_ROWS",
        "block * steps * NPU_TILE + (lane ^ 1u) * NPU_ROWS",
    ),
    Broken("a clamp one too low", "npu", OUTPUT, "moved > greatest ? greatest :", "moved >= greatest ? greatest - 1 :"),
    Broken(
        "expand that loses signs",
        "nuc_fpga",
        "accelerator.py",
        EXPAND,
        EXPAND.replace("EXPAND", "lambda e, r, i: sums.relax.op.abs(EXPAND(e, r, i))"),
        ("conv2d", "depthwise_conv2d"),
    ),
    Broken(
        "sums that are not cleared",
        "nuc_fpga",
        FPGA,
        "    clear_sums(block->count, g->columns);",
        "    clear_sums(block->count, y > 0 ? g->columns : 0);",
    ),
    Broken(
        "results a frame late",
        "nuc_fpga",
        DRIVER,
        COUNTED,
        """static int32_t compute(const struct job *job);

static int32_t run(const struct job *job)
{
    static int late[64];
    const int32_t code = compute(job);
    int *const out = (int *)(uintptr_t)job->out.at;
    for (uint32_t i = 0; job->command == NUC_FPGA_DENSE && i < job->out.bytes / 4u && i < 64u; ++i) {
        const int now = out[i];
        out[i] = late[i];
        late[i] = now;
    }
    return code;
}

static int32_t compute(const struct job *job)
{""",
        ("fully_connected",),
    ),
    Broken(
        "only the second inference wrong",
        "nuc_fpga",
        DRIVER,
        COUNTED,
        """static int32_t compute(const struct job *job);

static int32_t run(const struct job *job)
{
    static uint32_t dense;
    const int32_t code = compute(job);
    if (job->command == NUC_FPGA_DENSE && ++dense == 2u) {
        ((int *)(uintptr_t)job->out.at)[0] += 1 << 16;
    }
    return code;
}

static int32_t compute(const struct job *job)
{""",
        ("fully_connected",),
    ),
]
