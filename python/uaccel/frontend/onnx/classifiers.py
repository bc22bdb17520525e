"""Models of ``ai.onnx.ml``, as scikit-learn's are exported: what they do to features, and what to scores."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.onnx.convert import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node
from uaccel.frontend.onnx.integer import real
from uaccel.frontend.onnx.operators import LEARNING
from uaccel.model import Array
from uaccel.ops.base import constant
from uaccel.tvm_api import relax

TEXTS: Final = "its labels are texts; fit the model with numbers, and keep their names in the application"
TRANSFORMS: Final = ("NONE", "SOFTMAX", "LOGISTIC")
WHOLE: Final = ("int32", "int64")


def float_rows(context: Context, node: Node) -> Expr:
    """The input as rows of float32."""
    name = node.required_input(0)
    info, data = context.info(name), context.expr(name)
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
    """Labels and scores; of two classes with one score ``likely`` says that this is how likely the second is."""
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
    """Of the class of a number."""
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
    """A row without any size stays as it is."""
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
    name, given = node.required_input(0), node.attributes
    info, data = context.info(name), context.expr(name)
    kind = "float" if info.dtype == "float32" else "int64"
    need(info.dtype in ("float32", "int64"), f"its input is {info}, wanted float32 or int64")
    values = np.asarray(given.get(f"imputed_value_{kind}s", ()), info.dtype)
    need(values.size in (1, info.shape[-1]), f"it has {values.size} values for {info.shape[-1]} features")
    replaced = given.get(f"replaced_value_{kind}", 0)
    found = relax.op.isnan(data) if replaced != replaced else relax.op.equal(data, real(replaced, context, data))
    return relax.op.where(found, constant(values), data)


@converts(f"{LEARNING}.Binarizer")
def binariser(context: Context, node: Node) -> Expr:
    name = node.required_input(0)
    data = context.expr(name)
    above = relax.op.greater(data, real(node.attributes.get("threshold", 0.0), context, data))
    return relax.op.astype(above, context.info(name).dtype)


@converts(f"{LEARNING}.ArrayFeatureExtractor")
def extract(context: Context, node: Node) -> Expr:
    """Along the last axis; of a list a row."""
    name = node.required_input(0)
    info = context.info(name)
    places = context.expr(node.required_input(1))
    known = context.known(node.required_input(1))
    inside = known is None or bool(((known >= 0) & (known < info.shape[-1])).all())
    need(inside, f"it extracts features beyond the {info.shape[-1]} of {info}")
    flat = constant(known.reshape(-1)) if known is not None else relax.op.reshape(places, (-1,))
    made = relax.op.take(context.expr(name), flat, len(info.shape) - 1, mode="clip")
    return made if len(info.shape) > 1 else relax.op.expand_dims(made, 0)


@converts(f"{LEARNING}.ZipMap")
def zip_map(context: Context, node: Node) -> Expr:
    """Maps from labels to scores, which are the scores in the order of the labels."""
    return context.expr(node.required_input(0))


@converts(f"{LEARNING}.LabelEncoder")
def label_encoder(context: Context, node: Node) -> Expr:
    """From numbers to numbers, by a comparison with each."""
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
