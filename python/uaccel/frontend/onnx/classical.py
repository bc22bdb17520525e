"""Converts classical models of ``ai.onnx.ml``, as scikit-learn's are exported: linear ones and support vectors."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.onnx.converter import Context, Expr, converts, real
from uaccel.frontend.onnx.graph import LEARNING, Node
from uaccel.model import Array
from uaccel.ops.classical import Distances
from uaccel.ops.operator import Attributes, constant, get
from uaccel.tvm_api import relax

# Labels and scores, linear models, and operators on features.

TEXTS: Final = "its labels are texts; fit the model with numbers, and keep their names in the application"
TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC")
WHOLE: Final = ("int32", "int64")


def float_rows(context: Context, node: Node) -> Expr:
    """The input as rows of float32."""
    data, info = context.operand(node)
    kind = f"its input is {info}, wanted rows of float32; export the model with FloatTensorType"
    need(len(info.shape) in (1, 2) and info.dtype in ("float32", *WHOLE), kind)
    data = data if info.dtype == "float32" else relax.op.astype(data, "float32")
    return data if len(info.shape) == 2 else relax.op.reshape(data, (1, *info.shape))


def labels_of(node: Node, name: str) -> Array:
    texts = [key for key, value in node.attributes.items() if key.startswith("classlabels_str") and value]
    need(not texts, TEXTS)
    labels = np.asarray(node.attributes.get(name, ()), np.int64)
    need(len(labels) > 1, f"it has {len(labels)} labels, wanted 2 or more")
    return labels


def transformed(scores: Expr, how: str) -> Expr:
    need(how in TRANSFORMS, f"its post_transform is {how}; {', '.join(TRANSFORMS)} can be compiled")
    if how == "NONE":
        return scores
    return relax.op.sigmoid(scores) if how == "LOGISTIC" else relax.op.nn.softmax(scores)


def decided(context: Context, scores: Expr, labels: Array, how: str, *, likely: bool) -> list[Expr]:
    """Labels and scores of rows.

    Two classes may have one score. If it is ``likely``, it is the probability p of the second class: it wins above 0.5,
    and the scores are 1 - p and p. Else it wins above 0, and the scores are transformed from -s and s.
    """
    scores = context.block.builder.emit(scores)
    count = int(context.normal(scores).ty.shape[1])
    if count > 1:
        need(count == len(labels), f"it has {count} scores for {len(labels)} labels")
        number = relax.op.argmax(scores, axis=1)
        return [label(context, number, labels), transformed(scores, how)]
    need(len(labels) == 2, f"it has one score for {len(labels)} labels")
    above = relax.op.greater(scores, real(0.5 if likely else 0.0, context, scores))
    number = relax.op.squeeze(relax.op.astype(above, "int64"), [1])
    other = relax.op.negative(scores)
    if likely:
        return [label(context, number, labels), _both(relax.op.add(other, real(1.0, context, scores)), scores)]
    return [label(context, number, labels), transformed(_both(other, scores), how)]


def _both(first: Expr, second: Expr) -> Expr:
    return relax.op.concat([first, second], 1)


def label(context: Context, number: Expr, labels: Array) -> Expr:
    """The label of the class with this number."""
    number = context.normal(relax.op.astype(number, "int64"))
    if np.array_equal(labels, np.arange(len(labels))):
        return number
    return relax.op.take(constant(labels), number, 0, mode="clip")


@converts(f"{LEARNING}.LinearClassifier")
def linear_classifier(context: Context, node: Node) -> list[Expr]:
    labels, made = labels_of(node, "classlabels_ints"), _products(context, node, "")
    return decided(context, made, labels, node.attributes.get("post_transform", "NONE"), likely=False)


@converts(f"{LEARNING}.LinearRegressor")
def linear_regressor(context: Context, node: Node) -> Expr:
    made = _products(context, node, int(node.attributes.get("targets", 1)))
    return transformed(made, node.attributes.get("post_transform", "NONE"))


def _products(context: Context, node: Node, targets: Any) -> Expr:
    data = context.normal(float_rows(context, node))
    columns, given = int(data.ty.shape[1]), node.attributes
    weights = np.asarray(given.get("coefficients", ()), np.float32)
    bias = np.asarray(given.get("intercepts", ()), np.float32)
    rows = int(targets or len(bias) or weights.size // columns)
    need(weights.size == rows * columns, f"it has {weights.size} coefficients for {rows} times {columns}")
    need(len(bias) in (0, rows), f"it has {len(bias)} intercepts, wanted {rows}")
    made = relax.op.matmul(data, constant(np.ascontiguousarray(weights.reshape(rows, columns).T)))
    return relax.op.add(made, constant(bias)) if bias.any() else made


@converts(f"{LEARNING}.Scaler")
def scaler(context: Context, node: Node) -> Expr:
    data, given = float_rows(context, node), node.attributes
    offset, scale = (np.asarray(given.get(name, ()), np.float32) for name in ("offset", "scale"))
    moved = relax.op.subtract(data, constant(offset)) if offset.any() else data
    return relax.op.multiply(moved, constant(scale)) if scale.size else moved


@converts(f"{LEARNING}.Normalizer")
def normaliser(context: Context, node: Node) -> Expr:
    """Divide each row by its norm; a row whose norm is 0 stays as it is."""
    data, how = context.block.builder.emit(float_rows(context, node)), node.attributes.get("norm", "MAX")
    need(how in ("MAX", "L1", "L2"), f"its norm is {how}; MAX, L1 and L2 can be compiled")
    if how == "MAX":
        size = relax.op.max(data, 1, True)
    else:
        total = relax.op.sum(relax.op.abs(data) if how == "L1" else relax.op.multiply(data, data), 1, True)
        size = total if how == "L1" else relax.op.sqrt(total)
    size = context.block.builder.emit(size)
    none = relax.op.equal(size, real(0.0, context, data))
    return relax.op.divide(data, relax.op.where(none, real(1.0, context, data), size))


@converts(f"{LEARNING}.Imputer")
def imputer(context: Context, node: Node) -> Expr:
    (data, info), given = context.operand(node), node.attributes
    kind = "float" if info.dtype == "float32" else "int64"
    need(info.dtype in ("float32", "int64"), f"its input is {info}, wanted float32 or int64")
    values = np.asarray(given.get(f"imputed_value_{kind}s", ()), info.dtype)
    need(values.size in (1, info.shape[-1]), f"it has {values.size} values for {info.shape[-1]} features")
    replaced = given.get(f"replaced_value_{kind}", 0)
    found = relax.op.isnan(data) if replaced != replaced else relax.op.equal(data, real(replaced, context, data))
    return relax.op.where(found, constant(values), data)


@converts(f"{LEARNING}.Binarizer")
def binariser(context: Context, node: Node) -> Expr:
    data, info = context.operand(node)
    above = relax.op.greater(data, real(node.attributes.get("threshold", 0.0), context, data))
    return relax.op.astype(above, info.dtype)


@converts(f"{LEARNING}.ArrayFeatureExtractor")
def extract(context: Context, node: Node) -> Expr:
    """Pick features along the last axis; the result of a list is a row."""
    data, info = context.operand(node)
    places = context.expr(node.required_input(1))
    known = context.known(node.required_input(1))
    inside = known is None or bool(((known >= 0) & (known < info.shape[-1])).all())
    need(inside, f"it extracts features beyond the {info.shape[-1]} of {info}")
    flat = constant(known.reshape(-1)) if known is not None else relax.op.reshape(places, (-1,))
    made = relax.op.take(data, flat, len(info.shape) - 1, mode="clip")
    return made if len(info.shape) > 1 else relax.op.expand_dims(made, 0)


@converts(f"{LEARNING}.ZipMap")
def zip_map(context: Context, node: Node) -> Expr:
    """Maps from labels to scores stay tensors: the scores in the order of the labels."""
    return context.expr(node.required_input(0))


@converts(f"{LEARNING}.LabelEncoder")
def label_encoder(context: Context, node: Node) -> Expr:
    """Map numbers to numbers by a comparison with every key; what matches none becomes the default."""
    given, info = node.attributes, context.info(node.required_input(0))
    from_texts = any(name.endswith("strings") and value for name, value in given.items())
    need(not from_texts, "it encodes texts; only numbers can be compiled")
    keys, values = (_numbers(given, which) for which in ("keys", "values"))
    need(len(keys) == len(values) > 0, f"it has {len(keys)} keys and {len(values)} values")
    fallback = {"float32": -0.0, "int64": -1}[str(values.dtype)]
    name = "default_float" if values.dtype == np.float32 else "default_int64"
    data = context.block.builder.emit(relax.op.expand_dims(context.expr(node.required_input(0)), -1))
    context.budget.array((info.elements, len(keys)), 8)
    found = relax.op.equal(data, constant(keys.astype(info.dtype)))
    if np.isnan(keys.astype(np.float64)).any():
        nan = relax.op.logical_and(relax.op.isnan(data), constant(np.isnan(keys)))
        found = relax.op.logical_or(found, nan)
    found = context.block.builder.emit(relax.op.astype(found, "int32"))
    which = relax.op.take(constant(values), relax.op.argmax(found, -1), 0, mode="clip")
    default = constant(np.asarray(given.get(name, fallback), values.dtype))
    return relax.op.where(relax.op.astype(relax.op.max(found, -1), "bool"), which, default)


def _numbers(given: Any, which: str) -> Array:
    floats = given.get(f"{which}_floats", ())
    tensor = given.get(f"{which}_tensor")
    if tensor is not None:
        return np.asarray(tensor).reshape(-1)
    return np.asarray(floats, np.float32) if floats else np.asarray(given.get(f"{which}_int64s", ()), np.int64)


# Support vector machines: the kernel of a row with each support vector, times constants.


def _floats(node: Node, name: str) -> Array:
    return np.asarray(node.attributes.get(name, ()), np.float32)


def _nearness(context: Context, node: Node) -> tuple[Expr, int]:
    """The kernel of each row with each support vector, and the number of vectors."""
    data = context.block.builder.emit(float_rows(context, node))
    columns, given = int(context.normal(data).ty.shape[1]), _floats(node, "support_vectors")
    count = given.size // columns
    need(0 < count * columns == given.size, f"it has {given.size} numbers of vectors of {columns} features")
    vectors = given.reshape(count, columns)
    how, numbers = node.attributes.get("kernel_type", "LINEAR"), [float(n) for n in _floats(node, "kernel_params")]
    gamma, summand, degree = numbers if len(numbers) == 3 else (0.0, 0.0, 3.0)
    if how == "RBF":
        apart = get(Distances)(data, constant(vectors), attrs=Attributes())
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
def svm_regressor(context: Context, node: Node) -> Expr:
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
def svm_classifier(context: Context, node: Node) -> list[Expr]:
    """Each pair of classes i < j has a score, whose sign gives one of them a vote. The label has the most votes.

    The coefficients are in LIBSVM's layout: a row for each other class, a column for each vector, vectors sorted by
    class. For vectors of class i, row j - 1 counts against class j; for vectors of class j, row i counts against class
    i. The matrix brings them to a column for each pair. A score above 0 votes for i, any other for j: with won as 0 or
    1 the votes are won * first + (1 - won) * second, which is won * (first - second) plus a constant.
    """
    labels, per_class = labels_of(node, "classlabels_ints"), node.attributes.get("vectors_per_class", ())
    fits = not node.attributes.get("prob_a", ())
    need(fits, "its probabilities are iterated; fit it without them (probability=False)")
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
    """The scores to output: those of pairs, but for two classes one each."""
    return transformed(relax.op.concat([relax.op.negative(scores), scores], 1) if classes == 2 else scores, how)
