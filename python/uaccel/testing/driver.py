"""Loads an accelerator's driver and the model of its device into the test's process, to be called with numpy arrays.

    driver = DriverUnderTest(load_accelerator("path/of/the/folder"))
    assert driver.activate() == 0
    assert driver.call("adder_add", x, y, x.size, 5) == 0

The C is compiled as the project compiles all of its own: every warning an error, undefined behaviour the test's end.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from uaccel.accelerator import Accelerator
from uaccel.board import load_board
from uaccel.board.accelerator_devices import CXX, rack_source
from uaccel.build.archive_reader import hal_folders
from uaccel.build.programs import find_command
from uaccel.errors import AcceleratorError
from uaccel.model import Array
from uaccel.runner.request import MODEL, Devices, devices_in_place
from uaccel.util import incoming
from uaccel.util.files import data_dir

STRICT: Final = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Wshadow", "-Werror")
SANITIZE: Final = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g")
_TRAP: Final = ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error")
_HARNESS: Final = Path(__file__).with_name("driver_harness.c")
_GUARD: Final = 64  # Bytes before, between and behind arrays, which must stay as they are.
_FILLING: Final = 0xA5  # What all bytes outside of arrays hold.

# Compilers that a driver should compile with without a warning, and their options for a microcontroller.
TARGETS: Final = {
    "gcc": (),
    "clang": (),
    "arm-none-eabi-gcc": ("-mcpu=cortex-m4", "-mthumb"),
    "riscv64-unknown-elf-gcc": ("-march=rv32imac", "-mabi=ilp32", "--specs=picolibc.specs"),
}


class DriverUnderTest:
    """Calls a driver whose device is a ``model`` or, with ``device="rtl"``, its RTL.

    ``memory``: how many bytes the device reaches, once for what it may write to and once for constants. With
    ``stalls``, a seed, the memory of RTL has wait states at random."""

    def __init__(
        self, accelerator: Accelerator, *, memory: int = 1 << 20, device: str = MODEL, stalls: int | None = None
    ) -> None:
        self.accelerator = accelerator
        self.device = device
        self._memory = memory
        self._folder = tempfile.TemporaryDirectory(prefix="uaccel-driver-")
        self._library = ctypes.CDLL(str(self._build(Path(self._folder.name))))
        for name in ("shared", "constants"):
            getattr(self._library, f"harness_{name}").restype = ctypes.c_void_p
        for name in ("failure", "log", "let_fail"):
            getattr(self._library, f"harness_{name}").restype = ctypes.c_char_p
        for name in ("cycles", "busy"):
            getattr(self._library, f"harness_{name}").restype = ctypes.c_uint64
        self._library.uaccel_hal_device.restype = ctypes.c_void_p
        with devices_in_place(Devices(device, stalls=stalls), [accelerator]):  # the first look for a device loads them
            self._device = ctypes.c_void_p(self._library.uaccel_hal_device(accelerator.name.encode()))

    def activate(self) -> int:
        """Calls the driver's hook and returns its status, as do the other three."""
        return self._hook("Activate")

    def open(self) -> int:
        return self._hook("Open")

    def close(self) -> int:
        return self._hook("Close")

    def deactivate(self) -> int:
        return self._hook("Deactivate")

    def call(self, function: str, *arguments: Array | int | float | ctypes.c_void_p) -> int:
        """Calls a function and returns its status; writeable arrays then hold what it made of them.

        Arrays lie in memory that the device reaches, between guards that must not change. Read-only arrays lie in
        memory that it cannot write to. A ``c_void_p`` is handed on as it is: an address that no device reaches.
        """
        placed = _Placed(self._library, self._memory, self.accelerator.alignment)
        status = int(getattr(self._library, function)(*(placed.argument(argument) for argument in arguments)))
        placed.fetch(function)
        return status

    def let_fail(self, fault: str) -> None:
        """Resets the device and lets it fail: ``hang``, ``error``, ``vanish``, ``version`` or ``dma``, then ``@N``."""
        wrong = self._library.harness_let_fail(f"{self.accelerator.name}:{fault}".encode() if fault else b"")
        if wrong is not None:
            raise AcceleratorError(f"fault '{fault}' of {self.accelerator.name}: {wrong.decode()}")

    def reset(self) -> None:
        """Resets the device as after power-on, and the driver's accounts."""
        self.let_fail("")

    @property
    def calls(self) -> int:
        """The calls that the driver accounted since the reset, as ``cycles`` are the cycles."""
        return int(self._library.harness_calls())

    @property
    def cycles(self) -> int:
        return int(self._library.harness_cycles())

    @property
    def busy(self) -> int:
        """The cycles since the reset as the device itself counts them."""
        return int(self._library.harness_busy())

    @property
    def failure(self) -> str:
        """The last failure that the driver reported."""
        return str(self._library.harness_failure().decode())

    @property
    def log(self) -> str:
        """The last line that it logged."""
        return str(self._library.harness_log().decode())

    def _hook(self, what: str) -> int:
        return int(getattr(self._library, f"TVMDevice{self.accelerator.camel_case}{what}")(self._device))

    def _build(self, folder: Path) -> Path:
        rack = folder / "devices.c"
        rack.write_text(rack_source([self.accelerator.name] if self.accelerator.has_device else []))
        includes, sources = host_hal()
        library = folder / "driver.so"
        flags = [
            "-O1",
            "-shared",
            "-fPIC",
            *_TRAP,
            "-DUACCEL_ACCOUNTING",
            f"-DMEMORY_BYTES={self._memory}",
            *(f"-I{path}" for path in includes),
        ]
        objects = compile_cxx(self.accelerator, folder)
        build = self.accelerator.device_build
        flags += [*map(str, objects), *(f"-l{name}" for name in build.libraries), *(["-lstdc++"] if objects else [])]
        compile_c(self.accelerator, [_HARNESS, rack, *sources, *c_files(self.accelerator)], library, flags=flags)
        return library


class _Placed:
    """Places arrays in the memory that a device reaches, and checks after the call that nothing else was written.

    All memory is filled with one value first. A byte outside of arrays that differs afterwards was written by mistake;
    only a write of just that value goes unnoticed. An array that is given twice lies there once, as in C."""

    def __init__(self, library: Any, memory: int, alignment: int) -> None:
        self._alignment = max(alignment, 16)
        self._memories = {}
        for writable, name in ((True, "shared"), (False, "constants")):
            address = getattr(library, f"harness_{name}")()
            ctypes.memset(address, _FILLING, memory)
            self._memories[writable] = np.ctypeslib.as_array((ctypes.c_uint8 * memory).from_address(address))
        self._used = {True: _GUARD, False: _GUARD}
        self._arrays: list[tuple[Array, int]] = []

    def argument(self, argument: Array | int | float | ctypes.c_void_p) -> Any:
        if isinstance(argument, ctypes.c_void_p):
            return argument
        if isinstance(argument, np.ndarray):
            return ctypes.c_void_p(self._address(argument))
        return ctypes.c_float(argument) if isinstance(argument, float) else ctypes.c_int32(argument)

    def _address(self, array: Array) -> int:
        writable = bool(array.flags.writeable)
        memory = self._memories[writable]
        begin = next((offset for known, offset in self._arrays if known is array), None)
        if begin is None:
            begin = -(-self._used[writable] // self._alignment) * self._alignment
            self._used[writable] = begin + array.nbytes + _GUARD
            if self._used[writable] > memory.size:
                raise AcceleratorError(
                    f"the arrays take more than the {memory.size} bytes of the test's memory; "
                    "make it larger: DriverUnderTest(..., memory=BYTES)"
                )
            memory[begin : begin + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            self._arrays.append((array, begin))
        return int(memory.ctypes.data) + begin

    def fetch(self, function: str) -> None:
        """Copy back the writeable arrays, and fail if a constant or a byte beside the arrays was changed."""
        for writable, memory in self._memories.items():
            outside = np.ones(memory.size, np.bool_)
            for array, begin in self._arrays:
                if bool(array.flags.writeable) != writable:
                    continue
                found = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
                outside[begin : begin + array.nbytes] = False
                if writable:
                    array[...] = found
                else:
                    assert found.tobytes() == array.tobytes(), f"{function} changed a constant"
            changed = np.flatnonzero(outside & (memory != _FILLING))
            assert not len(changed), f"{function} wrote {len(changed)} bytes beside its arrays"


def host_hal() -> tuple[list[Path], list[Path]]:
    """Returns the HAL of the host, with which drivers reach models of their devices: header folders and C files."""
    folders = hal_folders(load_board("host"))
    sources = [path for folder in folders for path in sorted(folder.glob("*.c"))]
    return [data_dir("firmware") / "include", *folders], sources


def c_files(accelerator: Accelerator) -> list[Path]:
    """Returns the C sources of its driver, and of the model of its device or of its instructions."""
    files = (*accelerator.drivers, *accelerator.devices, *accelerator.units)
    return [path for path in files if path.suffix == ".c"]


def compile_cxx(accelerator: Accelerator, folder: Path) -> list[Path]:
    """Compiles the C++ of its device's model to objects."""
    merged = in_one_folder(accelerator, folder / f"{accelerator.name}_files")
    sources = [merged[path] for path in accelerator.devices if path.suffix in CXX]
    build, device = accelerator.device_build, folder / f"{accelerator.name}_files" / "device"
    folders = [data_dir("firmware") / "include", device, *(device / name for name in build.includes)]
    objects = [folder / f"{number}.o" for number in range(len(sources))]
    for source, made in zip(sources, objects, strict=True):
        program = find_command("C++ compiler", f"testing {accelerator.name}")
        words = ["-std=c++17", "-O1", "-fPIC", *STRICT[1:], *build.flags, *(f"-I{path}" for path in folders)]
        command = [*program.command, *words, "-c", str(source), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:4000]}"
    return objects


def in_one_folder(accelerator: Accelerator, folder: Path) -> dict[Path, Path]:
    """Copies all files into one folder, as in a project, and returns the new place of each.

    An accelerator may use files of another one, which lie elsewhere."""
    places = {path: folder / name for name, path in accelerator.files.items()}
    for path, place in places.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        content = incoming.read_bytes(path)
        if not place.exists() or incoming.read_bytes(place) != content:
            place.write_bytes(content)
    return places


def compile_c(
    accelerator: Accelerator,
    sources: Sequence[Path],
    output: Path,
    *,
    compiler: str = "C compiler",
    flags: Sequence[str] = (),
) -> None:
    """Compiles C with the accelerator's own headers and uaccel's; a warning is an error, which fails the test."""
    merged = in_one_folder(accelerator, output.parent / f"{accelerator.name}_files")
    sources = [merged.get(source, source) for source in sources]
    folders = [*{path.parent for path in merged.values()}, data_dir("firmware") / "include"]
    program = find_command(compiler, f"testing {accelerator.name}")
    command = [*program.command, *STRICT, *flags, *(f"-I{folder}" for folder in folders), *map(str, sources)]
    done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr[:4000]}"


def compile_with_each(accelerator: Accelerator, folder: Path) -> list[str]:
    """Compiles driver and model with each compiler that is installed, with accounting and without; returns which."""
    there = [compiler for compiler in TARGETS if shutil.which(compiler)]
    for compiler in there:
        for source in c_files(accelerator):
            for accounting in ((), ("-DUACCEL_ACCOUNTING",)):
                flags = ["-O2", "-c", *TARGETS[compiler], *accounting]
                compile_c(accelerator, [source], folder / f"{source.stem}.o", compiler=compiler, flags=flags)
    return there


def run_sanitized(accelerator: Accelerator, program: Path, folder: Path, *arguments: object) -> str:
    """Runs a C program of the test with the device's model under the sanitizers, and returns what it prints."""
    output = folder / program.stem
    devices = [path for path in accelerator.devices if path.suffix == ".c"]
    compile_c(accelerator, [program, *devices], output, flags=["-O1", *SANITIZE])
    command = [str(output), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, ""), f"exit status {done.returncode}:\n{done.stderr[:4000]}"
    return done.stdout
