"""What a model may list as its outputs: inputs, constants, views, repetitions, fields of a split."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from support.models.tflite_writer import ModelBuilder, Tensor
from support.oracle.exactness import assert_exact_random
from support.oracle.sanitized import assert_clean

SHAPE = (2, 3)


class Graph(ModelBuilder):
    """Steps of int8 graphs; every tensor has one quantisation."""

    def x(self, shape: tuple[int, ...] = SHAPE, name: str = "x") -> Tensor:
        return self.input(name, shape, "int8", scale=0.5, zero_point=3)

    def int8(self, name: str, shape: tuple[int, ...]) -> Tensor:
        return self.tensor(name, shape, "int8", scale=0.5, zero_point=3)

    def int32s(self, name: str, values: list[int] | int) -> Tensor:
        return self.constant(name, np.array(values, np.int32))

    def reshaped(self, source: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
        target = self.int8(name, shape)
        self.op("RESHAPE", [source], [target], {"new_shape": shape})
        return target

    def transposed(self, source: Tensor, name: str) -> Tensor:
        target = self.int8(name, source.shape[::-1])
        order = list(reversed(range(len(source.shape))))
        self.op("TRANSPOSE", [source, self.int32s(f"{name} order", order)], [target])
        return target

    def added(self, first: Tensor, second: Tensor, name: str) -> Tensor:
        target = self.int8(name, first.shape)
        self.op("ADD", [first, second], [target])
        return target

    def halves(self, source: Tensor) -> tuple[Tensor, Tensor]:
        shape = (*source.shape[:-1], source.shape[-1] // 2)
        left, right = self.int8("left", shape), self.int8("right", shape)
        axis = self.int32s("axis", len(shape) - 1)
        self.op("SPLIT", [axis, source], [left, right], {"num_splits": 2})
        return left, right

    def shape_of(self, source: Tensor) -> Tensor:
        target = self.tensor("shape", (len(source.shape),), "int32")
        self.op("SHAPE", [source], [target], {"out_type": "INT32"})
        return target


Make = Callable[[Graph], list[Tensor]]


def view_of_the_input(g: Graph) -> list[Tensor]:
    return [g.reshaped(g.x(), "y", (6,))]


def views_of_the_input_twice(g: Graph) -> list[Tensor]:
    x = g.x()
    return [g.reshaped(x, "y", (6,)), g.reshaped(x, "z", (3, 2))]


def the_input_itself(g: Graph) -> list[Tensor]:
    x = g.x()
    return [g.transposed(x, "y"), x]


def the_same_tensor_twice(g: Graph) -> list[Tensor]:
    y = g.transposed(g.x(), "y")
    return [y, y]


def the_same_tensor_thrice_around_another(g: Graph) -> list[Tensor]:
    x = g.x()
    y = g.transposed(x, "y")
    return [y, g.added(x, x, "z"), y, y]


def consumed_later(g: Graph) -> list[Tensor]:
    y = g.transposed(g.x(), "y")
    return [y, g.transposed(y, "z")]


def consumed_later_where_it_could_be_overwritten(g: Graph) -> list[Tensor]:
    x = g.x()
    y = g.added(x, x, "y")
    return [y, g.added(y, x, "z")]


def view_of_another_output(g: Graph) -> list[Tensor]:
    y = g.transposed(g.x(), "y")
    return [y, g.reshaped(y, "z", (6,))]


def another_output_after_its_view(g: Graph) -> list[Tensor]:
    y = g.transposed(g.x(), "y")
    z = g.reshaped(y, "z", (6,))
    return [z, y]


def two_views_of_an_intermediate(g: Graph) -> list[Tensor]:
    y = g.transposed(g.x(), "y")
    return [g.reshaped(y, "z", (6,)), g.reshaped(y, "w", (1, 6)), g.transposed(y, "v")]


def views_of_views(g: Graph) -> list[Tensor]:
    y = g.transposed(g.x(), "y")
    z = g.reshaped(y, "z", (6,))
    w = g.reshaped(z, "w", (1, 6))
    return [w, z, y, g.reshaped(w, "v", SHAPE)]


def view_whose_source_is_used_further(g: Graph) -> list[Tensor]:
    x = g.x()
    y = g.added(x, x, "y")
    z = g.reshaped(y, "z", (6,))
    return [g.added(y, x, "w"), g.added(z, z, "v")]


def view_as_output_whose_source_is_used_further(g: Graph) -> list[Tensor]:
    x = g.x()
    y = g.added(x, x, "y")
    z = g.reshaped(y, "z", (6,))
    w = g.added(y, x, "w")
    return [z, g.added(w, y, "v")]


def a_constant(g: Graph) -> list[Tensor]:
    constant = g.constant("c", np.array([1, -2, 3], np.int8), scale=0.5)
    return [g.transposed(g.x(), "y"), constant]


def a_folded_constant(g: Graph) -> list[Tensor]:
    return [g.shape_of(g.x())]


def a_folded_constant_twice(g: Graph) -> list[Tensor]:
    shape = g.shape_of(g.x())
    return [shape, shape]


def halves_in_another_order(g: Graph) -> list[Tensor]:
    left, right = g.halves(g.x((2, 4)))
    return [right, left, right]


def one_half(g: Graph) -> list[Tensor]:
    return [g.halves(g.x((2, 4)))[1]]


def halves_put_together(g: Graph) -> list[Tensor]:
    left, right = g.halves(g.x((2, 4)))
    y = g.int8("y", (2, 6))
    g.op("CONCATENATION", [right, left, right], [y], {"axis": 1})
    return [y, left]


def view_of_a_half(g: Graph) -> list[Tensor]:
    left, right = g.halves(g.x((2, 4)))
    return [g.reshaped(left, "flat", (4,)), g.added(left, right, "y")]


def a_scalar_by_an_empty_shape(g: Graph) -> list[Tensor]:
    y = g.int8("y", ())
    g.op("RESHAPE", [g.x((1, 1)), g.constant("none", np.zeros(0, np.int32))], [y])
    return [y]


def an_unused_input(g: Graph) -> list[Tensor]:
    g.x(name="unused")
    return [g.transposed(g.x(), "y")]


MODELS: list[Make] = [
    view_of_the_input,
    views_of_the_input_twice,
    the_input_itself,
    the_same_tensor_twice,
    the_same_tensor_thrice_around_another,
    consumed_later,
    consumed_later_where_it_could_be_overwritten,
    view_of_another_output,
    another_output_after_its_view,
    two_views_of_an_intermediate,
    views_of_views,
    view_whose_source_is_used_further,
    view_as_output_whose_source_is_used_further,
    a_constant,
    a_folded_constant,
    a_folded_constant_twice,
    halves_in_another_order,
    one_half,
    halves_put_together,
    view_of_a_half,
    a_scalar_by_an_empty_shape,
    an_unused_input,
]


def model(make: Make) -> bytes:
    graph = Graph()
    return graph.build(*make(graph))


@pytest.mark.sample(6)
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_exact(make: Make) -> None:
    assert_exact_random(model(make), runs=3)


@pytest.mark.parametrize(
    "make",
    [views_of_views, view_as_output_whose_source_is_used_further, halves_in_another_order],
    ids=lambda make: make.__name__,
)
def test_clean_under_sanitizers(make: Make) -> None:
    assert_clean(model(make), runs=2)


def test_no_output_is_copied_that_has_memory_of_its_own() -> None:
    for make in (consumed_later, one_half, view_whose_source_is_used_further):
        program = assert_exact_random(model(make), runs=1, meaning=False).program
        assert "copy" not in [layer.op for layer in program.layers], make.__name__


def test_the_fields_of_a_split_have_the_names_and_quantisation_of_the_file() -> None:
    program = assert_exact_random(model(halves_in_another_order), runs=1, meaning=False).program
    (split,) = (layer for layer in program.layers if layer.op == "split")
    assert [value.spec.name for value in split.outputs] == ["left", "right"]
    assert [str(value.spec.quantisation) for value in split.outputs] == ["scale 0.5, zero point 3"] * 2
    assert (split.name, split.origin.op) == ("split_0", "SPLIT")
