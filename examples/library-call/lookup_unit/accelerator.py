"""lookup_unit: every byte of a tensor through a table of 256 bytes: tanh, logistic, hard swish and whatever else a
function of one int8 or uint8 number is."""

from uaccel.accelerator import Accelerator, Constant, Input, Lowered, Operation, Output, Region, library_call

LARGEST = 65536  # bytes of a tensor
START_UP, BUS_BYTES, ENTRIES = 20, 4, 256


def cycles(region: Region) -> int:
    """What the device takes: to begin, to load the table, and for each word one to read and one to write."""
    return START_UP + ENTRIES // BUS_BYTES + 2 * -(-region.output.size // BUS_BYTES)


def can_look_up(region: Region) -> str | None:
    """Why not, in the words that `uaccel explain` shows."""
    data, table = region.operands
    if table.constant is None:
        return "its table is computed at run time, wanted a constant"
    return f"a tensor of {data.info.size} bytes, and it takes {LARGEST}" if data.info.size > LARGEST else None


def look_up(region: Region) -> Lowered:
    """One call of the driver. `Input` and `Output` are pointers there, `Constant` is an array in flash."""
    table = Constant("table", region.operands[1].value)
    call = library_call("lookup_unit_translate", Input(0), table, Output(0), region.output.size)
    return Lowered((call,), cycles=cycles(region))


ACCELERATOR = Accelerator(
    name="lookup_unit",
    description="functions of one byte, by a table",
    headers=["lookup_unit.h"],
    operations=[Operation("translate", "lookup", look_up, can_look_up, cycles)],
)
