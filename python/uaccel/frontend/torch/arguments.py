"""An operator's arguments as a file gives them, each one of the few kinds that operators on tensors take."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from uaccel.frontend.torch.program_file import Argument, Value
from uaccel.frontend.torch.serialised import device, fields, integer, items, need, number, tagged, text, truth

STORED: Final = (
    dict(enumerate(("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"), 1))
    | dict(enumerate(("complex32", "complex64", "complex128", "bool", "bfloat16"), 9))
    | {28: "uint16", 34: "uint32", 35: "uint64"}
    | dict(enumerate(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 29))
)
"""The types of stored elements, by the numbers that files give them."""
DTYPES: Final = {number: "float32" if name == "float16" else name for number, name in STORED.items()}
"""Those that programs compute with: what is half precision in a file is held in float32."""
"""PyTorch's numbers of types."""
_FORMATS: Final = {1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format"}
_STRIDED: Final = 7


class Arguments:
    """``values`` holds what earlier operators made, by name."""

    def __init__(self, torch: Any, values: Mapping[str, Any]) -> None:
        self._torch = torch
        self._values = values
        self._read: dict[str, Callable[[Any, str], Any]] = {
            "as_none": lambda _value, _what: None,
            "as_tensor": self._tensor,
            "as_tensors": lambda value, what: list(items(value, what, self._tensor)),
            "as_int": integer,
            "as_ints": lambda value, what: list(items(value, what, integer)),
            "as_float": number,
            "as_floats": lambda value, what: list(items(value, what, number)),
            "as_bool": truth,
            "as_bools": lambda value, what: list(items(value, what, truth)),
            "as_string": text,
            "as_scalar_type": lambda value, what: dtype(torch, value, what),
            "as_memory_format": self._format,
            "as_layout": self._layout,
            "as_device": lambda value, what: torch.device(device(value, what)),
            "as_optional_tensor": self._any,
            "as_optional_tensors": lambda value, what: list(items(value, what, self._any)),
            **dict.fromkeys(("as_sym_int", "as_sym_float", "as_sym_bool"), self._number),
            **dict.fromkeys(
                ("as_sym_ints", "as_sym_floats", "as_sym_bools"),
                lambda value, what: list(items(value, what, self._number)),
            ),
        }

    def value(self, value: Value, what: str) -> Any:
        tag, content = value
        need(tag in self._read, f"{what} is {tag[:40]!r}, which no operator on tensors takes")
        return self._read[tag](content, what)

    def call(self, schema: Any, given: tuple[Argument, ...]) -> tuple[list[Any], dict[str, Any]]:
        """By place and by name, in the order of the operator's schema."""
        left = {argument.name: argument for argument in given}
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for place, declared in enumerate(schema.arguments):
            argument = left.pop(declared.name, None)
            if argument is None:
                continue
            value = self.value(argument.value, f"its argument {declared.name!r}")
            by_place = argument.kind == 1 or (argument.kind == 0 and not declared.has_default_value())
            if by_place and not declared.kwarg_only and place == len(args):
                args.append(value)
            else:
                kwargs[declared.name] = value
        need(not left, f"it has the unknown argument {next(iter(left), '')[:40]!r}")
        return args, kwargs

    def _tensor(self, value: Any, what: str) -> Any:
        return self._named(fields(value, what, "name")[0], what)

    def _named(self, name: Any, what: str) -> Any:
        found = text(name, what)
        need(found in self._values, f"{what} is {found[:40]!r}, which nothing before it makes")
        return self._values[found]

    def _any(self, value: Any, what: str) -> Any:
        return self.value(tagged(value, what), what)

    def _number(self, value: Any, what: str) -> Any:
        tag, content = tagged(value, what)
        return self._named(content, what) if tag == "as_name" else self.value((tag, content), what)

    def _format(self, value: Any, what: str) -> Any:
        need(type(value) is int and value in _FORMATS, f"{what} is no memory format")
        return getattr(self._torch, _FORMATS[value])

    def _layout(self, value: Any, what: str) -> Any:
        need(value == _STRIDED, f"{what} is no layout of dense tensors")
        return self._torch.strided


def dtype(torch: Any, value: Any, what: str) -> Any:
    need(type(value) is int and value in DTYPES, f"{what} is no type of elements")
    return getattr(torch, DTYPES[value])
