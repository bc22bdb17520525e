"""What an accelerator's driver returns, in words: the codes of firmware/include/uaccel_accelerator.h."""

from __future__ import annotations

from typing import Final

CODES: Final = {
    1: "the device did not finish",
    2: "the device reports an error",
    3: "the device does not answer: its registers read all ones",
    4: "another device is there",
    5: "the device is of a version that the driver does not know",
    6: "the device was refused access to memory",
    7: "the command stream is damaged or truncated",
    8: "the driver was asked for something that the device cannot do",
}
"""Where the driver says nothing more of it. Those that are missing here are a vendor's own."""
