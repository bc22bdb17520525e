"""Trees of ``ai.onnx.ml`` as tables of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from uaccel.errors import need
from uaccel.frontend.onnx.classifiers import decided, float_rows, labels_of, transformed
from uaccel.frontend.onnx.convert import Context, Expr, converts
from uaccel.frontend.onnx.graph import Node
from uaccel.frontend.onnx.operators import LEARNING
from uaccel.model import Array
from uaccel.ops.base import constant, get
from uaccel.ops.trees import LEAF, Trees, TreesAttrs

LEAF_MODE: Final = "LEAF"
STRICT, TURNED = ("BRANCH_LT", "BRANCH_GTE"), ("BRANCH_GT", "BRANCH_GTE")
"""Modes that leave out the threshold itself from what is below, and whose true branch takes what is above."""
MODES: Final = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GT", "BRANCH_GTE")

Key = tuple[int, int]
"""Of a node: its tree and its number in it."""


@converts(f"{LEARNING}.TreeEnsembleRegressor")
def regressor(context: Context, node: Node) -> Expr:
    attributes = node.attributes
    how = attributes.get("aggregate_function", "SUM")
    need(how in ("SUM", "AVERAGE"), f"it aggregates by {how}; SUM and AVERAGE can be compiled")
    forest = _Forest.read(node, "target", int(attributes.get("n_targets", 1)))
    if how == "AVERAGE":
        forest.scale(1 / len(forest.roots))
    return transformed(_scores(context, node, forest), attributes.get("post_transform", "NONE"))


@converts(f"{LEARNING}.TreeEnsembleClassifier")
def classifier(context: Context, node: Node) -> list[Expr]:
    """Labels, and scores of all classes. Two classes may share one score, which stands where the first's would."""
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
    """``leaves``: the scores that a leaf adds to, and what; ``nodes``: feature, threshold, the true and the false
    branch, and whether what is not a number takes the true one."""

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
            need(modes[i] in MODES, f"a node branches by {modes[i]}; {', '.join(MODES)} can be compiled")
            branches, turned = [(trees[i], yes[i]), (trees[i], no[i])], modes[i] in TURNED
            below = np.nextafter(np.float32(values[i]), np.float32(-np.inf)) if modes[i] in STRICT else values[i]
            first, second = branches[::-1] if turned else branches
            forest.nodes[key] = features[i], float(below), first, second, bool(tracks[i]) != turned
        forest._add_weights(given, role, scores)
        forest.roots = [key for i, key in enumerate(keys) if i == 0 or trees[i] != trees[i - 1]]
        forest._walk()
        return forest

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
        """In the order of the tables: a node, what its first branch leads to, what its second leads to."""
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

    def scale(self, factor: float) -> None:
        self.leaves = {key: [(score, weight * factor) for score, weight in leaf] for key, leaf in self.leaves.items()}

    def only(self) -> None:
        """Two classes have one score."""
        self.leaves = {key: [(0, weight) for _, weight in leaf] for key, leaf in self.leaves.items()}
        self.base = self.base[:1]

    def tables(self, columns: int) -> tuple[list[Array], TreesAttrs]:
        """What the operator takes."""
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
