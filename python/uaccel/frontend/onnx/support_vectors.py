"""Support vector machines of ``ai.onnx.ml``: products of a row's nearness to the vectors with constants."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from uaccel.errors import need
from uaccel.frontend.onnx.classifiers import float_rows, label, labels_of, transformed
from uaccel.frontend.onnx.convert import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node
from uaccel.frontend.onnx.integer import real
from uaccel.frontend.onnx.operators import LEARNING
from uaccel.model import Array
from uaccel.ops.base import constant, get
from uaccel.ops.distances import Distances, DistancesAttrs
from uaccel.tvm_api import relax


def _floats(node: Node, name: str) -> Array:
    return np.asarray(node.attributes.get(name, ()), np.float32)


def _nearness(context: Context, node: Node) -> tuple[Expr, int]:
    """What the kernel gives for each vector, and how many these are."""
    data = context.block.builder.emit(float_rows(context, node))
    columns, given = int(context.normal(data).ty.shape[1]), _floats(node, "support_vectors")
    count = given.size // columns
    need(0 < count * columns == given.size, f"it has {given.size} numbers of vectors of {columns} features")
    vectors = given.reshape(count, columns)
    how, numbers = node.attributes.get("kernel_type", "LINEAR"), [float(n) for n in _floats(node, "kernel_params")]
    gamma, summand, degree = numbers if len(numbers) == 3 else (0.0, 0.0, 3.0)
    if how == "RBF":
        apart = get(Distances)(data, constant(vectors), attrs=DistancesAttrs())
        return relax.op.exp(relax.op.multiply(apart, real(-gamma, context, data))), count
    made = relax.op.matmul(data, constant(np.ascontiguousarray(vectors.T)))
    if how == "LINEAR":
        return made, count
    need(how in ("POLY", "SIGMOID"), f"its kernel_type is {how}; LINEAR, POLY, RBF and SIGMOID can be compiled")
    made = relax.op.add(relax.op.multiply(made, real(gamma, context, data)), real(summand, context, data))
    if how == "SIGMOID":
        return relax.op.tanh(made), count
    need(degree == int(degree) > 0, f"its degree is {degree}, wanted a whole number")
    made = context.block.builder.emit(made)
    power = made
    for _ in range(int(degree) - 1):
        power = relax.op.multiply(power, made)
    return power, count


@converts(f"{LEARNING}.SVMRegressor")
def regressor(context: Context, node: Node) -> Expr:
    weights, rho = _floats(node, "coefficients"), _floats(node, "rho")
    need(rho.size == 1, f"it has {rho.size} summands (rho), wanted 1")
    near, count = (
        _nearness(context, node) if node.attributes.get("n_supports", 0) else (float_rows(context, node), weights.size)
    )
    need(weights.size == count, f"it has {weights.size} coefficients for {count} vectors")
    made = relax.op.add(relax.op.matmul(near, constant(weights.reshape(-1, 1))), constant(rho))
    if node.attributes.get("one_class", 0):
        above = relax.op.greater(made, real(0.0, context, made))
        return relax.op.where(above, real(1.0, context, made), real(-1.0, context, made))
    return transformed(made, node.attributes.get("post_transform", "NONE"))


@converts(f"{LEARNING}.SVMClassifier")
def classifier(context: Context, node: Node) -> list[Expr]:
    """Each pair of classes has a score and gives a vote."""
    labels, per_class = labels_of(node, "classlabels_ints"), node.attributes.get("vectors_per_class", ())
    need(
        not node.attributes.get("prob_a", ()), "its probabilities are iterated; fit it without them (probability=False)"
    )
    need(len(per_class) == len(labels), f"it has vectors of {len(per_class)} classes for {len(labels)} labels")
    near, count = _nearness(context, node)
    pairs, weights, rho = list(combinations(range(len(labels)), 2)), _floats(node, "coefficients"), _floats(node, "rho")
    need(sum(per_class) == count, f"it has {count} vectors and {sum(per_class)} of all classes")
    need(weights.size == (len(labels) - 1) * count, f"it has {weights.size} coefficients for {count} vectors")
    need(len(rho) == len(pairs), f"it has {len(rho)} summands (rho), wanted {len(pairs)}")
    weights, ends = weights.reshape(len(labels) - 1, count), np.cumsum([0, *per_class])
    matrix = np.zeros((count, len(pairs)), np.float32)
    first, second = (np.zeros((len(pairs), len(labels)), np.float32) for _ in range(2))
    for number, (i, j) in enumerate(pairs):
        for of, other in ((i, j - 1), (j, i)):
            matrix[ends[of] : ends[of + 1], number] = weights[other, ends[of] : ends[of + 1]]
        first[number, i] = second[number, j] = 1
    scores = context.block.builder.emit(relax.op.add(relax.op.matmul(near, constant(matrix)), constant(rho)))
    won = relax.op.astype(relax.op.greater(scores, real(0.0, context, scores)), "float32")
    votes = relax.op.add(relax.op.matmul(won, constant(first - second)), constant(second.sum(0)))
    how = node.attributes.get("post_transform", "NONE")
    return [label(context, relax.op.argmax(votes, axis=1), labels), _shown(scores, how, len(labels))]


def _shown(scores: Expr, how: str, classes: int) -> Expr:
    """Two classes have a score each."""
    return transformed(relax.op.concat([relax.op.negative(scores), scores], 1) if classes == 2 else scores, how)
