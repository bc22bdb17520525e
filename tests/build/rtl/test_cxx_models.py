"""Device models in C++, with flags, folders and libraries of their own: in a process, behind QEMU, in unit tests."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from support.device.boards import board_with_tools
from support.run.command import Call
from uaccel.accelerator import load_accelerator
from uaccel.errors import AcceleratorError
from uaccel.testing import DriverUnderTest

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
MODEL = """
#include <vector>

#include <zlib.h>

#include "uaccel_device.h"
#include "wide.h"

namespace {

struct Chip {
    std::vector<uint32_t> registers;
    const uaccel_bus *bus;
    uint64_t busy;
};
Chip chip;

int8_t element(uint32_t address)
{
    int8_t value = 0;
    chip.bus->read(chip.bus->context, address, &value, 1);
    return value;
}

void multiply()
{
    auto &reg = chip.registers;
    for (uint32_t at = 0; at < reg[7] * reg[9]; ++at) {
        wide sum = 0;
        for (uint32_t i = 0; i < reg[8]; ++i) {
            sum += element(reg[4] + at / reg[9] * reg[8] + i) * element(reg[5] + at % reg[9] * reg[8] + i);
        }
        chip.bus->write(chip.bus->context, reg[6] + 4 * at, &sum, 4);
        chip.busy += BUSY;
    }
    reg[3] = crc32(0, nullptr, 0) == 0 ? 1 : 3;
    reg[10] = static_cast<uint32_t>(chip.busy);
}

void reset(void *, const uaccel_bus *bus)
{
    chip.registers.assign(11, 0);
    chip.registers[0] = 0x53544152;
    chip.registers[1] = 1;
    chip.bus = bus;
    chip.busy = 0;
}

uint32_t read(void *, uint32_t offset)
{
    return chip.registers[offset / 4];
}

void write(void *, uint32_t offset, uint32_t value)
{
    chip.registers[offset / 4] = value;
    if (offset == 8) {
        multiply();
    }
}

uint64_t cycles(const void *)
{
    return chip.busy;
}

} // namespace

extern "C" {
extern const uaccel_device_model chip_device;
const uaccel_device_model chip_device = {"chip", 44, 8, nullptr, reset, read, write, cycles, nullptr, nullptr,
                                         nullptr, nullptr, nullptr, 0, 0};
}
"""
BUILD = 'device_build=DeviceBuild(flags=["-DBUSY=3"], includes=["parts"], libraries=["z"]),'


@pytest.fixture
def folder(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "chip"
    monkeypatch.chdir(tmp_path)
    assert call("new", "accelerator", "chip").status == 0
    (folder / "device" / "chip_device.c").unlink()
    (folder / "device" / "chip_device.cc").write_text(MODEL)
    (folder / "device" / "parts").mkdir()
    (folder / "device" / "parts" / "wide.h").write_text("typedef int wide;\n")
    description = (folder / "accelerator.py").read_text()
    description = description.replace("Accelerator,", "Accelerator, DeviceBuild,", 1)
    (folder / "accelerator.py").write_text(description.replace("headers=", f"{BUILD} headers="))
    return folder


def test_a_driver_and_its_model(folder: Path) -> None:
    driver = DriverUnderTest(load_accelerator(str(folder)))
    assert driver.activate() == 0
    sums = np.zeros((1, 2), np.int32)
    x, weights = np.array([[1, 2, 3]], np.int8), np.array([[1, 1, 1], [-1, 0, 1]], np.int8)
    assert driver.call("chip_multiply", x, weights, sums, 1, 3, 2) == 0, driver.failure
    assert (sums.tolist(), driver.busy) == ([[6, 2]], 6)


@pytest.mark.slow
@pytest.mark.parametrize("board", ["host", "mps2_an386"])
def test_a_network(folder: Path, board: str, call: Call) -> None:
    if board != "host":
        board_with_tools(board)
    model = folder / "tests" / "model.tflite"
    done = call("run", model, "-a", folder, "--board", board, "--verify", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out)["verify"]["bit_exact"] is True


def test_an_export_takes_c_alone(folder: Path, tmp_path: Path, call: Call) -> None:
    done = call("export", folder / "tests" / "model.tflite", "-a", folder, "--to", "make", "-o", tmp_path / "out")
    assert done.status == 1
    assert "the device of chip is more than C (device/chip_device.cc), and exports take C alone" in done.err


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ('flags=["-fplugin=x.so"]', "device_build.flags is ['-fplugin=x.so']; wanted a list of options such as -O3"),
        ('flags="-O3"', "device_build.flags is '-O3'; wanted a list of options such as -O3"),
        ('includes=["../x"]', "device_build.includes is ['../x']; wanted a list of folders below device/"),
        ('libraries=["-lz"]', "device_build.libraries is ['-lz']; wanted a list of names such as 'fftw3'"),
    ],
)
def test_fields_that_are_wrong(folder: Path, field: str, said: str) -> None:
    file = folder / "accelerator.py"
    file.write_text(file.read_text().replace(BUILD, f"device_build=DeviceBuild({field}),"))
    with pytest.raises(AcceleratorError) as raised:
        load_accelerator(str(folder))
    assert said in str(raised.value)
