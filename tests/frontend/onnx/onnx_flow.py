"""ONNX models with control flow, in ONNX's own text form."""

from __future__ import annotations

from typing import Any, Final

import pytest

HEAD: Final = '<ir_version: 8, opset_import: ["" : 17]>\n'
MODELS: Final = {
    "a choice": """g (float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) {
        w = Constant<value = float[3] {1.0, 2.0, 3.0}>()
        t = Add(x, w)
        y, z = If(c) <
            then_branch = a () => (float[2,3] p, float[2,3] q) { p = Mul(t, w)  q = Relu(x) },
            else_branch = b () => (float[2,3] p, float[2,3] q) {
                two = Constant<value = float {2.0}>()
                p = Sub(x, two)
                q = Identity(x)
            }>
    }""",
    "a choice of a constant": """g (float[3] x, bool c) => (float[3] y) {
        y = If(c) <
            then_branch = a () => (float[3] p) { p = Constant<value = float[3] {1.0, 2.0, 3.0}>() },
            else_branch = b () => (float[3] p) { p = Exp(x) }>
    }""",
    "as long as it holds": """g (float[4] x, int64 n) => (float[4] y) {
        c = Constant<value = bool {1}>()
        most = Constant<value = float {6.0}>()
        y = Loop(n, c, x) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] after) {
            after = Add(v, v)
            m = ReduceMax<keepdims = 0>(after)
            co = Less(m, most)
        }>
    }""",
    "until something, at first asked": """g (float[4] x, bool c) => (float[4] y) {
        most = Constant<value = float {6.0}>()
        y = Loop(, c, x) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] after) {
            squares = Mul(v, v)
            one = Constant<value = float {1.0}>()
            after = Add(squares, one)
            m = ReduceMax<keepdims = 0>(after)
            co = Less(m, most)
        }>
    }""",
    "turns with rows": """g (float[4] x, float[4] k) => (float[4] y, float[5,4] rows) {
        n = Constant<value = int64 {5}>()
        y, rows = Loop(n, , x) <body = b (int64 i, bool ci, float[4] v) => (bool co, float[4] after, float[4] row) {
            f = Cast<to = 1>(i)
            more = Add(v, f)
            after = Mul(more, k)
            co = Identity(ci)
            row = Tanh(after)
        }>
    }""",
    "a choice in each turn": """g (float[3] x, bool c) => (float[3] y) {
        n = Constant<value = int64 {3}>()
        y = Loop(n, , x) <body = b (int64 i, bool ci, float[3] v) => (bool co, float[3] after) {
            co = Identity(ci)
            one = Constant<value = int64 {1}>()
            second = Equal(i, one)
            both = Or(second, c)
            after = If(both) <
                then_branch = p () => (float[3] u) { u = Add(v, x) },
                else_branch = q () => (float[3] u) { u = Mul(v, v) }>
        }>
    }""",
    "a scan": """g (float[2] s, float[2,5] x, float[5,2] z) => (float[2] y, float[2,5] rows, float[5,2] more) {
        y, rows, more = Scan <
            num_scan_inputs = 2, scan_input_axes = [1, 0], scan_input_directions = [0, 1],
            scan_output_axes = [1, 0], scan_output_directions = [1, 0],
            body = b (float[2] a, float[2] e, float[2] f) => (float[2] after, float[2] row, float[2] other) {
                t = Mul(a, e)
                after = Add(t, f)
                row = Identity(after)
                other = Tanh(t)
            }> (s, x, z)
    }""",
}
"""Each with inputs of floats, truths and counts."""
INTEGERS: Final = """g (float[1,4] x) => (float[1,4] y)
    <float s = {0.05}, int8 z = {1}, float t = {0.02}, int8 none = {0},
     int8[4,4] w = {10, -20, 30, 4, 5, 6, -70, 8, 9, 10, 11, -12, 33, 14, 15, -66}> {
        n = Constant<value = int64 {3}>()
        y = Loop(n, , x) <body = b (int64 i, bool ci, float[1,4] v) => (bool co, float[1,4] after) {
            co = Identity(ci)
            q = QuantizeLinear(v, s, z)
            d = DequantizeLinear(q, s, z)
            real = DequantizeLinear(w, t, none)
            product = MatMul(d, real)
            stored = QuantizeLinear(product, s, z)
            after = DequantizeLinear(stored, s, z)
        }>
    }"""
"""A quantised product in each turn."""


def endless(rows: str = "") -> str:
    return f"""g (float[3] x, int64 n) => (float[3] y{", float[N,3] r" if rows else ""}) {{
        y{", r" if rows else ""} = Loop({rows}, , x) <
            body = b (int64 i, bool ci, float[3] v) => (bool co, float[3] after{", float[3] row" if rows else ""}) {{
                co = Identity(ci)
                after = Add(v, v)
                {"row = Neg(v)" if rows else ""}
            }}>
    }}"""


def nested(deep: int) -> str:
    """A choice in a choice and so on, each with another that is none."""
    body = "u = Neg(x)"
    for _ in range(deep):
        body = f"""u = If(c) <then_branch = a () => (float[3] u) {{ {body} }},
                              else_branch = b () => (float[3] u) {{ u = Abs(x) }}>"""
    return f"g (float[3] x, bool c) => (float[3] u) {{ {body} }}"


def model_of(text: str) -> Any:
    onnx = pytest.importorskip("onnx", reason="the onnx package is not installed")
    return onnx.parser.parse_model(HEAD + text)
