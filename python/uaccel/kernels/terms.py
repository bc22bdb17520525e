"""What the cost of a kernel's call depends on: its sizes, and the products of them in which costs are stated.

A term like ``p2 c4 t`` is a product of sizes, each a letter of ``SIZES`` and, where a kernel works on several at once,
how many: ``p2`` is the pixels, rounded up to an even number. ``1`` is the call itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

SIZES: Final[Mapping[str, str]] = {
    "p": "pixels of the result as a kernel computes them; rows of matrices, elements",
    "l": "lines of these pixels",
    "w": "pixels of a line",
    "c": "channels of the result",
    "t": "products of an element of the result; of a pool the elements of its window",
    "f": "the same with what the kernel fills windows up with",
    "h": "rows of a window",
    "e": "pixels whose windows begin or end beside the input, or are copied one by one",
    "m": "1 where windows, rows or pixels are copied to be filled up",
    "r": "1 where the channels are no multiple of four",
    "s": "1 where negative results are rounded apart",
    "z": "1 where results are clamped",
    "i": "pixels of the input, or of the planes that it is put down in",
    "d": "channels of the input",
    "u": "lines whose windows are put down in scratch memory first",
    "n": "moves that put down a row of the input",
    "g": "regions that are computed apart",
}
Sizes = Mapping[str, float]
Terms = Mapping[str, float]
BASIC: Final = ("p c t", "p c", "1")  # A multiply-accumulate, an element of the result, a call: these any call has.
_PARTS: Final = ("geo", "windows", "layer")  # Structures within structures whose fields are sizes.


class _Fields:
    """The fields of a call's structure that are whole numbers, of which each kernel has its own."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.known = {}
        for name, value in parameters.items():
            part, _, last = name.rpartition(".")
            self.known[last if part in _PARTS else name] = value

    def __call__(self, *names: str, otherwise: int = 0) -> int:
        """The first of these that is there and not 0."""
        return next((value for value in map(self.known.get, names) if isinstance(value, int) and value), otherwise)

    def product(self, name: str) -> int:
        value = self.known.get(name, 1)
        return math.prod(value) if isinstance(value, tuple) else int(value)


def sizes_of(parameters: Mapping[str, Any], macs: float, outputs: float) -> Sizes:
    """The sizes of a call that computes ``outputs`` elements by ``macs`` multiply-accumulates."""
    field = _Fields(parameters)
    batch = field.product("batch")
    channels = field("out_channels", "units", "columns", "inner", "channels", "depth", otherwise=1)
    if "extents" in field.known:
        channels = field.known["extents"][-1]
    pixels = outputs / channels
    lines = min(batch * field("out_height", "lines"), pixels) or 1.0
    products = macs / max(1.0, outputs) or field("entries") / 256 or float(_window(field))
    depth, flags = field("in_channels", "channels", "depth", otherwise=1), field("finish.flags")
    row = field("inside", "in_width", "pixels", otherwise=1)
    fours = field("groups" if "skipped" in field.known else "window")
    filled, whole = 4 * fours or field("filled", "length") or products, 16 if "inside" in field.known else 1
    found: dict[str, float] = {
        "p": pixels,
        "l": lines,
        "w": pixels / lines,
        "c": channels,
        "t": products,
        "f": filled,
        "h": field("kernel_height", otherwise=1),
        "e": pixels if field("copied") > 1 else _at_edges(field, pixels / batch) * batch,
        "m": field("copied") == 1 or (not fours and not field("taken") and (filled > products or depth % whole > 0)),
        "r": channels % 4 > 0,
        "s": flags & 1 or field("finish.sign") or ("extents" not in field.known and field("sign")),
        "z": flags >> 2 & 1 or field("finish.clamp"),
        "i": batch * field("in_height", "lines", otherwise=1) * row,
        "d": depth,
        "u": max(0.0, lines - field("direct")),
        "n": row / field("taken") if field("taken") else row * math.ceil(depth / whole),
        "g": 1,
    }
    return found | _regions(field, batch)


def stated_outputs(parameters: Mapping[str, Any]) -> int:
    """Returns how many elements a call of a convolution computes by its fields; 0 for other calls."""
    field = _Fields(parameters)
    return field.product("batch") * field("out_height") * field("out_width") * field("out_channels")


def _regions(field: _Fields, batch: int) -> dict[str, float]:
    """What differs where a kernel puts parts of the input down as planes."""
    if field("region_height"):
        rows, columns = (-(-field(f"out_{axis}") // field(f"region_{axis}")) for axis in ("height", "width"))
        regions, loads = batch * rows * columns, field("loads")
        pixels = 8.0 * regions * field("count") * (1 if loads else field("region_height"))
        gathered = loads / 4 if loads in (0, 2) else max(1.0, loads / 4)  # Loops of one load are as those of four.
        planes = regions * field("rows") * field("pitch")
        return {"p": pixels, "t": gathered, "f": gathered, "g": regions, "i": planes}
    if field("band"):
        bands = batch * -(-field("out_height") // field("band"))
        return {"g": bands, "i": bands * field("plane")}
    return {}


def _window(field: _Fields) -> int:
    """The elements of which a pool or a sum makes one."""
    reduced = field("reduced_outer", otherwise=1) * field("reduced_inner", otherwise=1)
    return field("kernel_height", otherwise=1) * field("kernel_width", otherwise=1) * reduced


def _at_edges(field: _Fields, pixels: float) -> float:
    """Windows of an image that reach beyond it."""
    inside = 1
    for axis, before in (("height", "top"), ("width", "left")):
        step, pad = field(f"stride_{axis}", "stride", otherwise=1), field(f"pad_{before}")
        reach = (field(f"kernel_{axis}", otherwise=1) - 1) * field(f"dilation_{axis}", otherwise=1)
        last = min(field(f"out_{axis}") - 1, (field(f"in_{axis}") - 1 - reach + pad) // step)
        inside *= max(0, last + 1 - -(-pad // step))
    return max(0.0, pixels - inside) if field("kernel_height") else 0.0


def term_of(term: str, sizes: Sizes) -> float:
    """The product that a term stands for."""
    product = 1.0
    for word in term.split() if term != "1" else ():
        size, block = sizes[word[0]], int(word[1:] or 1)
        product *= size if block == 1 else math.ceil(size / block) * block
    return product


def cost_of(terms: Terms, sizes: Sizes) -> float:
    return sum(value * term_of(term, sizes) for term, value in terms.items())
