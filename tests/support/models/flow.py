"""Models with control flow: a choice between two subgraphs, and a loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from support.models.tflite_writer import ModelBuilder, OptionValue, Tensor

SHAPE = (1, 4, 4, 3)


def _quantised(model: ModelBuilder, name: str) -> Tensor:
    return model.tensor(name, SHAPE, "int8", scale=0.1, zero_point=3)


def _convolved(model: ModelBuilder, given: Tensor, name: str) -> Tensor:
    weights = np.random.RandomState(1).randint(-127, 128, (3, 3, 3, 3)).astype(np.int8)
    taps = model.constant(f"{name} weights", weights, scales=(0.01, 0.02, 0.015), axis=0)
    bias = model.constant(f"{name} bias", np.array([100, -50, 7], np.int32), scale=0.001)
    result = _quantised(model, name)
    options: dict[str, OptionValue] = {
        "padding": "SAME",
        "stride_h": 1,
        "stride_w": 1,
        "dilation_h_factor": 1,
        "dilation_w_factor": 1,
    }
    model.op("CONV_2D", [given, taps, bias], [result], options)
    return result


@dataclass(frozen=True)
class Choice:
    """Of an image by a bool: convolved twice, or its double; ``two`` outputs where a branch gives them; ``same``: the
    other branch gives what it was given."""

    two: bool = False
    same: bool = False
    refused: str = ""

    def build(self) -> bytes:
        model = ModelBuilder()
        chosen = model.input("chosen", (1,), "bool")
        x = model.input("x", SHAPE, "int8", scale=0.1, zero_point=3)
        outputs = [_quantised(model, f"y{i}") for i in range(1 + self.two)]
        before = _quantised(model, "before")
        model.op("ADD", [x, x], [before])
        model.op("IF", [chosen, before], outputs, {"then_subgraph_index": 1, "else_subgraph_index": 2})
        for output in outputs:
            model.output(output)
        then, otherwise = model.subgraph(), model.subgraph()
        a = then.input("a", SHAPE, "int8", scale=0.1, zero_point=3)
        once = _convolved(then, a, "once")
        then.output(_convolved(then, once, "twice"))
        b = otherwise.input("b", SHAPE, "int8", scale=0.1, zero_point=3)
        double = _quantised(otherwise, "double")
        otherwise.op(self.refused or "ADD", [b, b], [double])
        otherwise.output(b if self.same else double)
        if self.two:
            then.output(once)
            otherwise.output(b)
        return model.build()


@dataclass(frozen=True)
class Loop:
    """An image convolved as often as the input says; ``nested``: with a choice in each turn."""

    nested: bool = False
    endless: bool = False

    def build(self) -> bytes:
        model = ModelBuilder()
        times = model.input("times", (1,), "int32")
        x = model.input("x", SHAPE, "int8", scale=0.1, zero_point=3)
        zero = model.constant("zero", np.zeros(1, np.int32))
        outputs = [model.tensor("turns", (1,), "int32"), model.tensor("most", (1,), "int32"), _quantised(model, "y")]
        model.op("WHILE", [zero, times, x], outputs, {"cond_subgraph_index": 1, "body_subgraph_index": 2})
        for output in (outputs[0], outputs[2]):
            model.output(output)
        condition, body = model.subgraph(), model.subgraph()
        turn, most, _ = self._taken(condition)
        goes_on = condition.tensor("goes on", (1,), "bool")
        condition.op("LESS", [turn, most], [goes_on])
        condition.output(goes_on)
        turn, most, image = self._taken(body)
        one = body.constant("one", np.array([0 if self.endless else 1], np.int32))
        following = body.tensor("following", (1,), "int32")
        body.op("ADD", [turn, one], [following])
        result = self._chosen(model, body, turn, image) if self.nested else _convolved(body, image, "convolved")
        for tensor in (following, most, result):
            body.output(tensor)
        return model.build()

    @staticmethod
    def _taken(part: ModelBuilder) -> tuple[Tensor, Tensor, Tensor]:
        numbers = (part.input("turn", (1,), "int32"), part.input("most", (1,), "int32"))
        return *numbers, part.input("image", SHAPE, "int8", scale=0.1, zero_point=3)

    @staticmethod
    def _chosen(model: ModelBuilder, body: ModelBuilder, turn: Tensor, image: Tensor) -> Tensor:
        """Convolved in the first two turns, then doubled."""
        two = body.constant("two", np.array([2], np.int32))
        early, result = body.tensor("early", (1,), "bool"), _quantised(body, "result")
        body.op("LESS", [turn, two], [early])
        body.op("IF", [early, image], [result], {"then_subgraph_index": 3, "else_subgraph_index": 4})
        for number, part in enumerate((model.subgraph(), model.subgraph())):
            given = part.input("given", SHAPE, "int8", scale=0.1, zero_point=3)
            doubled = _quantised(part, "doubled")
            if number == 0:
                part.output(_convolved(part, given, "convolved"))
            else:
                part.op("ADD", [given, given], [doubled])
                part.output(doubled)
        return result


def given_weights() -> bytes:
    """A choice that is given constant weights, which one branch transposes and multiplies by."""
    model = ModelBuilder()
    chosen, x = model.input("chosen", (1,), "bool"), model.input("x", (2, 16), "float32")
    weights = model.constant("weights", np.random.RandomState(3).randn(24, 16).astype(np.float32))
    shape = model.constant("rows", np.ones((2, 24), np.float32))
    y = model.tensor("y", (2, 24), "float32")
    model.op("IF", [chosen, x, weights, shape], [y], {"then_subgraph_index": 1, "else_subgraph_index": 2})
    model.output(y)
    for branch in (model.subgraph(), model.subgraph()):
        a, w = branch.input("a", (2, 16), "float32"), branch.input("w", (24, 16), "float32")
        rows = branch.input("rows", (2, 24), "float32")
        order, turned = (
            branch.constant("order", np.array([1, 0], np.int32)),
            branch.tensor("turned", (16, 24), "float32"),
        )
        product, result = branch.tensor("product", (2, 24), "float32"), branch.tensor("result", (2, 24), "float32")
        branch.op("TRANSPOSE", [w, order], [turned])
        branch.op("BATCH_MATMUL", [a, turned], [product])
        branch.op("ADD", [product, rows], [result])
        branch.output(result)
    return model.build()
