"""Writes the C++ and the Verilog around an accelerator's module.

C++ makes a simulated device of it; Verilog puts it beside a core, as a unit for custom instructions or on buses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from uaccel.build.rtl.description import FILE, INSTRUCTIONS, MEMORY, REGISTERS, UNIT, Adapter, Rtl, RtlBus
from uaccel.errors import AcceleratorError, UaccelError
from uaccel.util.text import did_you_mean

# C++ that makes a device of a verilated module: structs give its ports the names of the buses, for the bus adapters.

_PORT = re.compile(r"VL_(?:IN|OUT|INOUT)(?:8|16|64|W|)\(&?(\w+),(\d+),(\d+)")


def ports_of(header: str) -> dict[str, int]:
    """The module's ports and their widths in bits, from the header that Verilator writes."""
    return {name: int(high) - int(low) + 1 for name, high, low in _PORT.findall(header)}


def glue(rtl: Rtl, name: str, prefix: str, ports: Mapping[str, int]) -> str:
    """The C++ around a module: ``name`` is the accelerator's, ``prefix`` that of the verilated class."""
    assert rtl.registers is not None  # else the vendor's own C++ does all of it
    adapter = {**REGISTERS, INSTRUCTIONS: UNIT}[rtl.registers.bus]
    registers = _Side(rtl, rtl.registers, adapter, "registers", ports)
    memories = [_Side(rtl, bus, MEMORY[bus.bus], f"memory{i}", ports) for i, bus in enumerate(rtl.memories)]
    sides = [registers, *memories]
    headers = dict.fromkeys(side.adapter.header for side in sides)
    pins = {"clock": rtl.clock, "reset": rtl.reset, "interrupt": rtl.interrupt, "busy": rtl.busy}
    for what, pin in pins.items():
        if pin and pin not in ports:
            raise _no_port(rtl, pin, f"{what} names it", ports)
    includes = "".join(f'#include "{header}"\n' for header in headers)
    structs = "".join(side.struct(prefix) for side in sides)
    accessors = "".join(_accessor("top", what, pin, "0") for what, pin in pins.items())
    made = "".join(
        f"    memories.emplace_back(new {side.type}(*device, {side.name}_ports{{device->top()}}));\n"
        for side in memories
    )
    values = {
        "PREFIX": prefix,
        "NAME": name,
        "INCLUDES": includes,
        "STRUCTS": structs,
        "PINS": accessors,
        "REGISTERS": f"new {registers.type}(*device, registers_ports{{device->top()}})",
        "MEMORIES": made,
        "START": rtl.start,
        "VERSION": rtl.version,
        "WINDOW": rtl.window,
        "ACTIVE": rtl.reset_active,
        "BUSY": "true" if rtl.busy else "false",
        "CLOCK": rtl.clocks[0],
        "CPU": rtl.clocks[1],
        "UNIT": _UNIT if rtl.is_unit else "",
    }
    return re.sub(r"@(\w+)@", lambda match: str(values[match[1]]), _TEXT)


def unit_module(rtl: Rtl, name: str) -> str:
    """The text of a Verilog module ``name`` around the vendor's unit, with the ports as a core has them."""
    assert rtl.registers is not None
    wires = {signal: rtl.registers.ports.get(signal, rtl.registers.prefix + signal) for signal in UNIT.signals}
    ports = {rtl.clock: "clk", rtl.reset: "reset" if rtl.reset_active else "~reset"}
    ports |= {port: signal for signal, port in wires.items()}
    numbers = ", ".join(f".{key}({value})" for key, value in rtl.parameters.items())
    connected = ", ".join(f".{port}({signal})" for port, signal in ports.items())
    signals = [f"{_direction(signal)} {signal}" for signal in UNIT.signals]
    return (
        f"/* Written by uaccel: {rtl.top} as the unit of the core's custom instructions. */\n"
        f"module {name} (input clk, input reset, {', '.join(signals)});\n"
        f"    {rtl.top} {f'#({numbers}) ' if numbers else ''}unit ({connected});\nendmodule\n"
    )


def _direction(signal: str) -> str:
    widths = {"cmd_payload_function_id": "[9:0]", "cmd_payload_inputs_0": "[31:0]", "cmd_payload_inputs_1": "[31:0]"}
    given = signal in ("cmd_valid", "rsp_ready", *widths)
    width = widths.get(signal, "[31:0]" if signal == "rsp_payload_outputs_0" else "")
    return " ".join(filter(None, ("input" if given else "output", width)))


class _Side:
    """Connects one bus: finds the module's ports for its signals, and writes the C++ struct that has them."""

    def __init__(self, rtl: Rtl, bus: RtlBus, adapter: Adapter, name: str, ports: Mapping[str, int]) -> None:
        self.name = name
        self.adapter = adapter
        self._found = {signal: _found(rtl, bus, signal, signal in adapter.signals, ports) for signal in adapter.all}
        width = ports[self._found[adapter.data]] if adapter.data else 32
        if width not in (8, 16, 32, 64):
            raise AcceleratorError(
                f"{rtl.folder / FILE}: port {self._found[adapter.data]} of {rtl.top} has {width} bits; "
                "wanted a bus of 8, 16, 32 or 64, or an adapter of your own (cpp = [...])"
            )
        self._bytes = width // 8
        shift = self._bytes.bit_length() - 1 if bus.words else 0
        first, further = bus.flash
        arguments = {"bytes": self._bytes, "latency": bus.latency, "shift": shift, "first": first, "next": further}
        words = "".join(f", {arguments[argument]}" for argument in adapter.arguments)
        self.type = f"{adapter.template}<{name}_ports{words}>"

    def struct(self, prefix: str) -> str:
        defaults = {**self.adapter.optional}
        size = str(self._bytes.bit_length() - 1)
        members = "".join(
            _accessor("top", signal, port, defaults.get(signal, "0").replace("SIZE", size))
            for signal, port in self._found.items()
        )
        return f"struct {self.name}_ports {{\n    {prefix} *top;\n{members}}};\n\n"


def _found(rtl: Rtl, bus: RtlBus, signal: str, required: bool, ports: Mapping[str, int]) -> str:
    """The module's name of a signal; empty where it has none and need not."""
    if signal in bus.ports:
        if bus.ports[signal] not in ports:
            raise _no_port(rtl, bus.ports[signal], f"{signal} of {bus.bus} is called so", ports)
        return bus.ports[signal]
    for name in (bus.prefix + signal, bus.prefix + signal.upper()):
        if name in ports:
            return name
    if required:
        raise _no_port(rtl, bus.prefix + signal, f"{bus.bus} needs it", ports)
    return ""


def _no_port(rtl: Rtl, name: str, why: str, ports: Mapping[str, int]) -> AcceleratorError:
    return AcceleratorError(
        f"{rtl.folder / FILE}: module {rtl.top} has no port {name}{did_you_mean(name, ports)}, and {why}; "
        f"it has: {', '.join(ports)}"
    )


def _accessor(owner: str, name: str, port: str, default: str) -> str:
    """A C++ member by which an adapter reads or writes a signal. A port that the module does not have is set to its
    default at each access, so that what is written to it has no effect."""
    if port:
        return f"    auto &{name}() {{ return {owner}->{port}; }}\n"
    return f"    uint64_t &{name}() {{ static uint64_t unused; unused = {default}; return unused; }}\n"


_TEXT = """\
/* Written by uaccel: module @PREFIX@ as the device of accelerator @NAME@. */
#include "@PREFIX@.h"
#include "uaccel_rtl_device.h"
@INCLUDES@
using namespace uaccel_rtl;

namespace {

@STRUCTS@struct Pins {
    @PREFIX@ *top;
@PINS@};

typedef Device<@PREFIX@, Pins> Rtl;
const Traits traits = {"@NAME@", @START@, @VERSION@, @ACTIVE@, @BUSY@};
Rtl *device;

int32_t open_device(void *)
{
    device = new Rtl(traits);
    if (!device->make()) {
        return -1;
    }
    std::vector<std::unique_ptr<Memory>> memories;
@MEMORIES@    device->connect(std::unique_ptr<Registers>(@REGISTERS@), std::move(memories));
    return 0;
}

void reset_device(void *, const uaccel_bus *bus) { device->reset(bus); }
uint32_t read_register(void *, uint32_t offset) { return device->read(offset); }
void write_register(void *, uint32_t offset, uint32_t value) { device->write(offset, value); }
uint64_t cycles_of_device(const void *) { return device->cycles(); }
void inject_fault(void *, uaccel_device_fault fault) { device->inject(fault); }
void tick_device(void *, uint64_t cycles) { device->tick(cycles); }
void close_device(void *) { device->close(); }
void tell_layer(void *, uint32_t layer) { device->layer(layer); }

} // namespace

/* What Verilator leaves to its user (VL_USER_...). */
static std::string told(const char *what, const char *file, int line)
{
    return std::string(what) + " (" + file + ":" + std::to_string(line) + ")";
}
void vl_finish(const char *file, int line, const char *)
{
    end_of_simulation() = told("the RTL ends the simulation ($finish)", file, line);
}
void vl_stop(const char *file, int line, const char *)
{
    end_of_simulation() = told("the RTL stops the simulation", file, line);
}
void vl_fatal(const char *file, int line, const char *, const char *what) { throw Ended(told(what, file, line)); }

extern "C" {
extern __attribute__((visibility("default"))) const uaccel_device_model @NAME@_device;
const uaccel_device_model @NAME@_device = {
    "@NAME@", @WINDOW@, @START@, nullptr, reset_device, read_register, write_register, cycles_of_device, inject_fault,
    open_device, tick_device, close_device, tell_layer, @CLOCK@, @CPU@,
};
@UNIT@}
"""
_UNIT = """
__attribute__((visibility("default"))) int32_t uaccel_unit_reset(uint32_t stalls)
{
    if (device == nullptr && open_device(nullptr) != 0) {
        return -1;
    }
    device->reset(nullptr);
    device->disturbance.seed(stalls * 2654435769u);
    return 0;
}

__attribute__((visibility("default"))) void uaccel_unit_close(void)
{
    device->close();
}

__attribute__((visibility("default"))) void uaccel_unit_take(uint32_t function, int32_t left, int32_t right)
{
    device->write(UNIT_LEFT, static_cast<uint32_t>(left));
    device->write(UNIT_RIGHT, static_cast<uint32_t>(right));
    device->write(UNIT_FUNCTION, function);
}

__attribute__((visibility("default"))) int32_t uaccel_unit_answer(void)
{
    return static_cast<int32_t>(device->read(UNIT_RESULT));
}
"""


# Verilog that puts an accelerator's RTL beside a core (examples/ulx3s): registers on APB, and an AXI4 master that a
# bridge turns into accesses of single words.

MODULE: Final = "uaccel_device"
WORDS: Final = ("asks", "we", "adr", "given", "sel", "ack", "refused", "word")  # Ports of the module that reach memory.
_PORT_OF_MODULE: Final = r"\b(?:input|output)(?:\s+(?:wire|reg|logic))?\s*(?:\[(\d+):0\])?\s*{}\b"


def width_of(text: str, port: str) -> int:
    """Bits of a port, which must have a declaration of its own in this Verilog; 0 where there is none."""
    found = re.search(_PORT_OF_MODULE.format(port), text)
    return int(found[1] or 0) + 1 if found else 0


def device_module(rtl: Rtl, sources: Sequence[Path]) -> str:
    """The text of the module around the top module, which one of the sources holds."""
    text = next(text for text in map(Path.read_text, sources) if re.search(rf"\bmodule\s+{rtl.top}\b", text))
    buses = [*([] if rtl.registers is None else [rtl.registers]), *rtl.memories]
    if [bus.bus for bus in buses] != ["apb", "axi4"]:
        seen = " and ".join(bus.bus for bus in buses) or "none"
        raise UaccelError(f"{rtl.folder}: the buses are {seen}; the chip has room for one apb and one axi4")
    registers, memory = _ports(rtl, text, buses[0], REGISTERS["apb"]), _ports(rtl, text, buses[1], MEMORY["axi4"])
    width = width_of(text, memory["rdata"])
    inside = {"arsize": "", "arburst": "", "awsize": "", "awburst": "", "wlast": ""}
    words = {signal: inside.get(signal, signal) for signal in memory}
    own = {rtl.clock: "clk", rtl.reset: "reset" if rtl.reset_active else "~reset"}
    own |= {port: signal for signal, port in registers.items()}
    own |= {port: words[signal] for signal, port in memory.items()}
    kept = [signal for signal in memory if signal not in inside]
    wires = "".join(f"    wire [{width_of(text, memory[signal]) - 1}:0] {signal};\n" for signal in kept)
    missing = "".join(f", .{signal}({value})" for signal, value in _missing(memory, width).items())
    other = ("clk", "reset", *kept, *WORDS)
    ready = "" if "pready" in registers else "    assign pready = 1;\n"
    numbers = ", ".join(f".{key}({value})" for key, value in rtl.parameters.items())
    return (
        f"/* Written by uaccel: {rtl.top} beside the core. */\n"
        f"module {MODULE} (input clk, reset, psel, penable, pwrite, input [15:0] paddr, input [31:0] pwdata,\n"
        "    output [31:0] prdata, output pready, output asks, we, output [29:0] adr, output [31:0] given,\n"
        "    output [3:0] sel, input ack, refused, input [31:0] word);\n"
        f"{wires}{ready}"
        f"    {rtl.top} {f'#({numbers}) ' if numbers else ''}device ({_connected(own)});\n"
        f"    axi4_words #({width // 8}) memory ({_connected({name: name for name in other})}{missing});\n"
        "endmodule\n"
    )


def _ports(rtl: Rtl, text: str, bus: RtlBus, adapter: Adapter) -> dict[str, str]:
    """The ports of a bus that the module has, by the bus's own names."""
    ports = {signal: bus.ports.get(signal, bus.prefix + signal) for signal in adapter.all}
    there = {signal: port for signal, port in ports.items() if width_of(text, port)}
    for signal in adapter.signals:
        if signal not in there:
            raise UaccelError(
                f"{rtl.folder}: {rtl.top} declares no port {ports[signal]}, which is {signal} of its {bus.bus}; "
                "wanted one declaration a port; correct 'prefix' or 'ports' in rtl.toml"
            )
    return there


def _missing(memory: dict[str, str], width: int) -> dict[str, str]:
    """Values that the bridge gets in place of signals that the master does not have."""
    values = {"arid": "8'd0", "awid": "8'd0", "wstrb": f"{{{width // 8}{{1'b1}}}}"}
    return {signal: value for signal, value in values.items() if signal not in memory}


def _connected(ports: dict[str, str]) -> str:
    return ", ".join(f".{port}({signal})" for port, signal in ports.items())
