"""Converts trees and forests of ``ai.onnx.ml``, as scikit-learn, LightGBM and XGBoost are exported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.onnx.classical import decided, float_rows, labels_of, transformed
from uaccel.frontend.onnx.converter import Context, Expr, converts
from uaccel.frontend.onnx.graph import LEARNING, Node
from uaccel.model import Array
from uaccel.ops.classical import LEAF, Trees, TreesAttrs
from uaccel.ops.operator import constant, get

# Trees, as tables of nodes in the layout that the operator Trees walks.
#
# There a node goes to its first branch, which stands right behind it, if value <= threshold, else to the second. All
# modes are brought to this form. For float32, x < v is the same as x <= the next number below v. And x > v or x >= v is
# the opposite of x <= v or x < v, so the branches change places. NaN compares false in all modes, and goes to the false
# branch unless the node says otherwise: after a change of places that is the first one, so a flag says which.

LEAF_MODE: Final = "LEAF"
# Modes that count the threshold itself as above; and modes whose true branch takes what is above.
STRICT, TURNED = ("BRANCH_LT", "BRANCH_GTE"), ("BRANCH_GT", "BRANCH_GTE")
MODES: Final = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE")

NUMBERED: Final = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")  # As TreeEnsemble counts them.
AGGREGATES: Final = ("AVERAGE", "SUM", "MIN", "MAX")

Key = tuple[int, int]  # A node: its tree, and its number there.


@converts(f"{LEARNING}.TreeEnsembleRegressor")
def regressor(context: Context, node: Node) -> Expr:
    attributes = node.attributes
    forest = _Forest.read(node, "target", int(attributes.get("n_targets", 1)))
    forest.aggregate(attributes.get("aggregate_function", "SUM"))
    return transformed(_scores(context, node, forest), attributes.get("post_transform", "NONE"))


@converts(f"{LEARNING}.TreeEnsemble")
def ensemble(context: Context, node: Node) -> Expr:
    """Trees of any kind since version 5 of the domain, which writes kinds as numbers."""
    attributes = node.attributes
    afterwards, how = attributes.get("post_transform", 0), attributes.get("aggregate_function", 1)
    need(
        afterwards == 0, f"its post_transform is {afterwards}, which ONNX and ONNX Runtime take for different functions"
    )
    forest = _Forest.read_one_table(node, int(attributes.get("n_targets", 1)))
    forest.aggregate(AGGREGATES[how] if 0 <= how < len(AGGREGATES) else str(how))
    return _scores(context, node, forest)


@converts(f"{LEARNING}.TreeEnsembleClassifier")
def classifier(context: Context, node: Node) -> list[Expr]:
    """Labels, and scores of all classes. Two classes may share one score, which stands where the first's would.

    That score is taken for a probability if no weight is negative, as ONNX Runtime takes it.
    """
    labels = labels_of(node, "classlabels_int64s")
    forest = _Forest.read(node, "class", len(labels))
    used = sorted({score for leaf in forest.leaves.values() for score, _ in leaf})
    single = len(labels) == 2 and len(used) == 1
    if single:
        plain = used == [0] and len(node.attributes.get("base_values", ())) < 2
        need(plain, "its two classes share the second's score, or have a base value each, which ONNX gives no meaning")
        forest.only()
    need(single or len(labels) > 2 or len(forest.base) == 2, "it has one base value for two classes")
    likely = all(weight >= 0 for leaf in forest.leaves.values() for _, weight in leaf)
    how = node.attributes.get("post_transform", "NONE")
    return decided(context, _scores(context, node, forest), labels, how, likely=likely)


def _scores(context: Context, node: Node, forest: _Forest) -> Expr:
    data = float_rows(context, node)
    columns = context.info(node.required_input(0)).shape[-1]
    tables, attrs = forest.tables(columns)
    return context.normal(get(Trees)(data, *map(constant, tables), attrs=attrs))


@dataclass
class _Forest:
    """Holds trees. ``leaves`` lists for each leaf the scores that it adds to, and what it adds.

    ``nodes`` has feature, threshold, first and second branch, and whether NaN goes to the first. ``order`` is the order
    of the tables.
    """

    roots: list[Key]
    nodes: dict[Key, tuple[int, float, Key, Key, bool]]
    leaves: dict[Key, list[tuple[int, float]]]
    base: Array
    order: list[Key] = field(default_factory=list)

    @staticmethod
    def read(node: Node, role: str, scores: int) -> _Forest:
        given = node.attributes
        trees, names = _ints(given, "nodes_treeids"), ("nodes_nodeids", "nodes_featureids")
        ids, features = (_ints(given, name, len(trees)) for name in names)
        yes, no = (_ints(given, f"nodes_{which}nodeids", len(trees)) for which in ("true", "false"))
        modes, values = given.get("nodes_modes", ()), given.get("nodes_values", ())
        tracks = given.get("nodes_missing_value_tracks_true", ()) or (0,) * len(trees)
        need(len(modes) == len(values) == len(tracks) == len(trees), "its lists of nodes differ in length")
        keys = list(zip(trees, ids, strict=True))
        need(len(set(keys)) == len(keys) > 0, "it has a node twice, or none")
        base = np.asarray(given.get("base_values", ()) or [0.0] * scores, np.float32)
        need(len(base) in (1, scores), f"it has {len(base)} base values, wanted {scores}")
        forest = _Forest([], {}, {}, base)
        for i, key in enumerate(keys):
            if modes[i] == LEAF_MODE:
                forest.leaves[key] = []
                continue
            branches = [(trees[i], yes[i]), (trees[i], no[i])]
            forest.branch(key, modes[i], features[i], values[i], branches, missing=bool(tracks[i]))
        forest._add_weights(given, role, scores)
        forest.roots = [key for i, key in enumerate(keys) if i == 0 or trees[i] != trees[i - 1]]
        forest._walk()
        return forest

    @staticmethod
    def read_one_table(node: Node, scores: int) -> _Forest:
        """Reads ``TreeEnsemble``, which numbers branches and leaves apart: the branches are tree 0 here, leaves 1.

        A tree of one leaf alone is written as a branch whose two ways lead to it."""
        given = node.attributes
        features = _ints(given, "nodes_featureids")
        count = len(features)
        values, modes = (np.asarray(given.get(f"nodes_{name}", ())).reshape(-1) for name in ("splits", "modes"))
        tracks = given.get("nodes_missing_value_tracks_true", ()) or (0,) * count
        need(len(values) == len(modes) == len(tracks) == count > 0, "its lists of nodes differ in length, or are empty")
        ways = [
            list(zip(_ints(given, f"nodes_{way}leafs", count), _ints(given, f"nodes_{way}nodeids", count), strict=True))
            for way in ("true", "false")
        ]
        targets, weights = _ints(given, "leaf_targetids"), np.asarray(given.get("leaf_weights", ())).reshape(-1)
        need(len(weights) == len(targets), f"it has {len(weights)} weights for {len(targets)} leaves")
        need(all(0 <= target < scores for target in targets), f"a leaf is of none of its {scores} targets")
        leaves = {(1, i): [(target, float(weights[i]))] for i, target in enumerate(targets)}
        forest = _Forest([(0, root) for root in _ints(given, "tree_roots")], {}, leaves, np.zeros(scores, np.float32))
        for i, (yes, no) in enumerate(zip(*ways, strict=True)):
            if yes == no and yes in leaves:
                leaves[0, i] = leaves[yes]
                continue
            mode = NUMBERED[int(modes[i])] if int(modes[i]) < len(NUMBERED) else str(modes[i])
            forest.branch((0, i), mode, features[i], float(values[i]), [yes, no], missing=bool(tracks[i]))
        forest._walk()
        return forest

    def branch(
        self, key: Key, mode: str, feature: int, value: float, branches: Sequence[Key], *, missing: bool
    ) -> None:
        """Adds a node in the form of the tables. ``branches``: where it goes if its comparison holds, and if not."""
        need(mode in MODES, f"a node branches by {mode}; {', '.join(MODES)} can be compiled")
        turned = mode in TURNED
        below = np.nextafter(np.float32(value), np.float32(-np.inf)) if mode in STRICT else value
        first, second = branches[::-1] if turned else branches
        self.nodes[key] = feature, float(below), first, second, missing != turned

    def _add_weights(self, given: Any, role: str, scores: int) -> None:
        trees = _ints(given, f"{role}_treeids")
        nodes, targets = (_ints(given, f"{role}_{name}", len(trees)) for name in ("nodeids", "ids"))
        weights = given.get(f"{role}_weights", ())
        need(len(weights) == len(trees), f"it has {len(weights)} weights for {len(trees)} leaves")
        for tree, node, target, weight in zip(trees, nodes, targets, weights, strict=True):
            leaf = self.leaves.get((tree, node))
            need(leaf is not None and 0 <= target < scores, f"a weight is of no leaf or of score {target} of {scores}")
            if leaf is not None:
                leaf.append((target, float(weight)))

    def _walk(self) -> None:
        """Set the order of the tables: a node, then all below its first branch, then all below its second."""
        seen: set[Key] = set()
        left = self.roots[::-1]
        while left:
            key = left.pop()
            need(key not in seen, f"node {key[1]} of tree {key[0]} is reached twice")
            need(key in self.nodes or key in self.leaves, f"tree {key[0]} has no node {key[1]}")
            seen.add(key)
            self.order.append(key)
            if key in self.nodes:
                _, _, first, second, _ = self.nodes[key]
                left += [second, first]

    def aggregate(self, how: str) -> None:
        need(how in ("SUM", "AVERAGE"), f"it aggregates by {how}; SUM and AVERAGE can be compiled")
        factor = 1 / len(self.roots) if how == "AVERAGE" else 1.0
        self.leaves = {key: [(score, weight * factor) for score, weight in leaf] for key, leaf in self.leaves.items()}

    def only(self) -> None:
        """Give all weights to one score, which two classes share."""
        self.leaves = {key: [(0, weight) for _, weight in leaf] for key, leaf in self.leaves.items()}
        self.base = self.base[:1]

    def tables(self, columns: int) -> tuple[list[Array], TreesAttrs]:
        """The operands of the operator, where a leaf has its score and weight in the fields of branch and threshold.

        If leaves add to several scores, the field of the branch is a row of a table of weights.
        """
        place = {key: number for number, key in enumerate(self.order)}
        shared = any(len(leaf) != 1 for leaf in self.leaves.values())
        features, thresholds, others, missing = [], [], [], []
        rows: list[list[tuple[int, float]]] = []
        for key in self.order:
            feature, threshold, _, second, track = self.nodes.get(key, (LEAF, 0.0, key, key, False))
            other = place[second]
            if key in self.leaves:
                leaf = self.leaves[key]
                (other, threshold) = (len(rows), 0.0) if shared else leaf[0]
                rows.append(leaf)
            else:
                need(0 <= feature < columns, f"a node reads feature {feature} of {columns}")
            features.append(feature)
            thresholds.append(threshold)
            others.append(other)
            missing.append(track)
        tables = [_small([place[key] for key in self.roots]), _small(features), np.asarray(thresholds, np.float32)]
        tables += [_small(others), self.base]
        tables += [_dense(rows, len(self.base))] * shared + [np.asarray(missing, np.uint8)] * any(missing)
        return tables, TreesAttrs(int(shared), int(any(missing)))


def _dense(rows: list[list[tuple[int, float]]], scores: int) -> Array:
    weights = np.zeros((len(rows), scores), np.float32)
    for row, leaf in zip(weights, rows, strict=True):
        for score, weight in leaf:
            row[score] += weight
    return weights


def _small(numbers: Sequence[int]) -> Array:
    largest = max(numbers)
    return np.asarray(numbers, np.int8 if largest < 1 << 7 else np.int16 if largest < 1 << 15 else np.int32)


def _ints(given: Any, name: str, count: int | None = None) -> tuple[int, ...]:
    values: tuple[int, ...] = tuple(given.get(name, ()))
    need(count is None or len(values) == count, f"{name} has {len(values)} entries, wanted {count}")
    return values
