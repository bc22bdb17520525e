"""Names that mean something in one of the places that names go to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.models.tflite_writer import ModelBuilder

HOSTILE = {
    "C comment": "*/ int injected; /*",
    "C++ comment": "// \\",
    "C string": 'a", system("touch pwned"), "',
    "trigraph": '??/" ??) ????',
    "end of line": 'a\n#error injected\n"',
    "carriage return": "a\r\nb\rc",
    "other ends of lines": "a\x0bb\x0cc\x85d\u2028e\u2029f",
    "CMake": "${CMAKE_COMMAND} $ENV{HOME} $CACHE{X} @VAR@",
    "CMake list": "a;b;;c",
    "CMake brackets": ']] ]=] "\nfile(WRITE pwned "")\n#[[',
    "linker": "} > flash /DISCARD/ : { *(*) }",
    "shell": "`touch pwned` $(touch pwned) ; touch pwned & | > pwned",
    "shell quotes": "'; touch pwned; '\"$HOME\"",
    "option": "--help",
    "make": "$(shell touch pwned)",
    "terminal": "\x1b[2J\x1b]0;title\x07\x1b[31m",
    "terminal, 8 bits": "\x9b2J\x9d0;title\x9c",
    "backspace": "bit exact\x08\x08\x08\x08\x08\x08\x08\x08\x08different",
    "right to left": "\u202ecexe\u202c \u2066a\u2069 \u200f",
    "nothing": "\u200b\ufeff\xad",
    "markup": "[bold red]x[/] :smile: [link=http://a.example]b[/link]",
    "HTML": '<script>alert(1)</script>&amp;"onload="x',
    "JSON": '"}, "verified": true, {"',
    "format": "%s%n {0} {elf} {{}}",
    "path": "../../../etc/passwd",
    "NUL": "a\0b",
    "long": "x" * 3000,
    "letters": "é 日本語 𝔘",
    "macro": "TVMGEN_MODEL_OK",
    "word of C": "int",
}
HALF = "half of a pair \udc80\ud800"
"""What Python makes of a file's name that is not UTF-8; no file of ours can hold it."""


def hostile_tflite() -> bytes:
    """A fully connected layer for each name, which its input has, and its output backwards."""
    model = ModelBuilder()
    weights = model.constant("weights", np.array([[3, -5], [7, 11]], np.int8), scale=0.5)
    for name in HOSTILE.values():
        x = model.input(name, (1, 2), "int8", scale=0.5, zero_point=1)
        y = model.tensor(name[::-1], (1, 2), "int8", scale=2.0, zero_point=-1)
        model.op("FULLY_CONNECTED", [x, weights], [y])
        model.output(y)
    return model.build()


def hostile_onnx(domain: str = "", op: str = "Relu") -> bytes:
    """A node for each name, which everything of it has that can have one."""
    onnx: Any = pytest.importorskip("onnx", reason="the onnx package is not installed")
    helper, names = onnx.helper, list(HOSTILE.values())
    nodes = [helper.make_node(op, [name], [f"{name}!"], name=name, domain=domain, doc_string=name) for name in names]
    inputs = [helper.make_tensor_value_info(name, 1, [1, 2]) for name in names]
    outputs = [helper.make_tensor_value_info(f"{name}!", 1, [1, 2]) for name in names]
    graph = helper.make_graph(nodes, names[0], inputs, outputs)
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name=names[0])
    return bytes(made.SerializeToString())
