"""Defines the operators of scikit-learn models: ensembles of decision trees, and distances to support vectors."""

from __future__ import annotations

from typing import Any, Final

from uaccel.model import TensorInfo
from uaccel.ops.operator import Attributes, ByLoops, Infos, IntegerOperator, Site, require
from uaccel.tvm_api import te, tirx
from uaccel.tvm_api.loops import count_to, local_array, te_let, while_holds

# Ensembles of decision trees: tables of nodes, and a loop that goes from a root to a leaf.

LEAF: Final = -1  # the feature of a leaf


class TreesAttrs(Attributes):
    """``shared``: leaves add to every score, and ``weights`` has a row for each leaf. ``missing``: nodes of that
    argument send NaN to the node behind them."""

    shared: int
    missing: int


class Trees(ByLoops[TreesAttrs]):
    """Computes scores of rows of features: ``base`` plus the contribution of one leaf of each tree.

    A node sends values up to its threshold to the node behind it, and others to the node in ``others``. A leaf has no
    feature. It adds its threshold to the score whose number is in ``others``; or, where leaves are shared, adds to all
    scores the row of ``weights`` that ``others`` names.
    """

    name = "trees"
    hides_differences = True
    arguments = ("input", "roots", "features", "thresholds", "others", "base", "weights", "missing")
    variadic = True

    def infer(self, attrs: TreesAttrs, *inputs: TensorInfo) -> TensorInfo:
        data, _, features, thresholds, others, base = inputs[:6]
        fit = len(data.shape) == 2 and features.shape == thresholds.shape == others.shape
        require(fit, f"trees: {data} with nodes {features}, {thresholds} and {others}")
        require(len(inputs) == 6 + attrs.shared + attrs.missing, f"trees: {len(inputs)} arguments for {attrs}")
        return TensorInfo((data.shape[0], base.shape[0]), data.dtype)

    def write(self, infos: Infos, attrs: TreesAttrs, data: Any, *arrays: Any) -> None:
        (rows, scores), depth, count = self.infer(attrs, *infos).shape, infos[0].shape[1], infos[1].elements
        roots, features, thresholds, others, base, *more, total = arrays
        node = local_array(1, "int32")

        def goes_on(row: Any) -> Any:
            """Whether the row goes on to the node right behind."""
            value = te_let(data[row * depth + features[node[0]]])
            below = value <= thresholds[node[0]]
            missing = tirx.all(more[-1][node[0]] != tirx.const(0, "uint8"), tirx.isnan(value)) if attrs.missing else 0
            return tirx.any(below, missing) if attrs.missing else below

        with count_to(rows) as row:
            first = row * scores
            with count_to(scores) as score:
                total[first + score] = base[score]
            with count_to(count) as tree:
                node[0] = tirx.Cast("int32", roots[tree])
                with while_holds(features[node[0]] >= tirx.const(0, infos[2].dtype)):
                    node[0] = tirx.Select(goes_on(row), node[0] + 1, tirx.Cast("int32", others[node[0]]))
                place = te_let(tirx.Cast("int32", others[node[0]]))
                if attrs.shared:
                    with count_to(scores) as score:
                        total[first + score] = total[first + score] + more[0][place * scores + score]
                else:
                    total[first + place] = total[first + place] + thresholds[node[0]]


# Squared distances between rows, in float, for the kernels of support vector machines.


class Distances(IntegerOperator[Attributes]):
    """Computes squared distances from each row of the input to each of ``others``; C is printed from the meaning."""

    name = "distances"
    arguments = ("input", "others")

    def infer(self, attrs: Attributes, one: TensorInfo, other: TensorInfo) -> TensorInfo:
        fit = len(one.shape) == len(other.shape) == 2 and one.shape[1] == other.shape[1]
        require(fit, f"distances: {one} and {other}, wanted rows of one length")
        return TensorInfo((one.shape[0], other.shape[0]), one.dtype)

    def meaning(self, attrs: Attributes, *inputs: Any) -> Any:
        one, other = inputs
        shape = self.results(inputs, attrs)[0].shape
        k = te.reduce_axis((0, one.shape[1]), name="k")

        def square(i: Any, j: Any) -> Any:
            return (one[i, k] - other[j, k]) * (one[i, k] - other[j, k])

        return te.compute(shape, lambda i, j: te.sum(square(i, j), axis=k), name=self.name)

    def macs(self, site: Site[Attributes]) -> int:
        return site.output.elements * site.operands[0].info.shape[1]
