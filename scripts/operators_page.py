"""docs/reference/operators.md from the operators' own words: operands, attributes, formula. Run it."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from typing import Any, Final

from uaccel import ops
from uaccel.ops.operator import REGISTRY, Attributes, IntegerOperator

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs" / "reference" / "operators.md"
HEADER: Final = ROOT / "firmware" / "kernels" / "common" / "uaccel_fixedpoint.h"
IN_C: Final = ("uaccel_shift_left", "uaccel_rounding_shift_right", "uaccel_requantise")
HEAD: Final = """# Integer operators

*What exactly does my hardware get to compute?* A pattern of an accelerator names these operators, and `region.attrs`
has their attributes. `python scripts/operators_page.py` writes this page from `python/uaccel/ops`.

Operands are in the order of `region.operands`. Attributes without a type are integers. Names in formulas are those of
operands and attributes. Operators of two inputs broadcast them, and either may be a constant: ask `.constant` before
`.value`. `clamp` bounds a result by `clamp_min` and `clamp_max`.

`requantise(x, multiplier, shift)` is x \\* multiplier \\* 2\\*\\*(shift - 31), rounded as attribute `rounding` says.
Without that attribute it is `tflite`, which rounds twice ([two roundings](../models.md#two-roundings)). In Python it is
`uaccel.testing.multiply_by_quantized_multiplier`, in C `uaccel_requantise` of
`firmware/kernels/common/uaccel_fixedpoint.h`, which a driver or a device may copy:

```text
{c}
```

`float32` is `uaccel_requantise_float32` of `uaccel_float32.h` in the same folder. Sums of 64 bits take
`uaccel_requantise_wide`.
"""


def page() -> str:
    """The whole text: a table for each module of operators."""
    modules = [importlib.import_module(f"{ops.__name__}.{found.name}") for found in pkgutil.iter_modules(ops.__path__)]
    return HEAD.replace("{c}", "\n\n".join(map(_function, IN_C))) + "".join(map(_section, modules))


def _section(module: Any) -> str:
    mine = [operator for operator in REGISTRY.values() if type(operator).__module__ == module.__name__]
    if not mine:
        return ""
    about = _sentence(_first(module).removeprefix("Defines "))
    rows = "\n".join(_row(operator) for operator in sorted(mine, key=lambda operator: operator.name))
    head = "| operator | operands | what it computes | attributes | |\n|---|---|---|---|---|"
    return f"\n## {module.__name__.rpartition('.')[2]}\n\n{about}\n\n{head}\n{rows}\n"


def _row(operator: IntegerOperator[Any]) -> str:
    """Attributes are told from the general ones to the operator's own."""
    line = [cls for cls in type(operator).attributes.__mro__[::-1] if issubclass(cls, Attributes) and cls != Attributes]
    told = " ".join(_sentence(" ".join(cls.__doc__.split())) for cls in line if cls.__doc__ and _tells(cls.__doc__))
    operands = f"{', '.join(operator.arguments)}{', ...' if operator.variadic else ''}"
    computes = " ".join((operator.__doc__ or "").split()).removeprefix("Computes ")
    fields = ", ".join(map(_field, dataclasses.fields(operator.attributes)))
    return f"| `{operator.name}` | {operands} | {_cell(computes)} | {fields} | {_cell(told)} |"


def _tells(words: str) -> bool:
    """Whether a docstring tells more than the names of the attributes do."""
    return not words.startswith(("Is the base of", "Has "))


def _field(field: dataclasses.Field[Any]) -> str:
    kind = str(field.type).removesuffix("[int, ...]")
    return f"`{field.name}`" if kind == "int" else f"`{field.name}` {kind}"


def _cell(text: str) -> str:
    return re.sub(r"([|*<])", r"\\\1", text.replace("``", ""))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _first(thing: Any) -> str:
    """The first paragraph of a docstring."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split())


def _function(name: str) -> str:
    """A function of the header with the comment above it."""
    function = rf"/\*[^\n]*\*/\nUACCEL_KERNEL \w+ {name}\(.*?^}}"
    found = re.search(function, HEADER.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None, f"{HEADER} has no {name}"
    return found[0]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
