"""A drawing of a graph in layers: who reads a tensor stands below who makes it.

Nodes have ranks by their longest path; edges over several ranks get a bend in each; bends and nodes of a rank are put
in an order with few crossings and then as straight above each other as their widths allow.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

GAP, RANK_GAP, BEND = 24.0, 30.0, 10.0
SWEEPS = 8
MOST_BENDS = 20_000
"""Beyond, long edges are drawn straight."""


@dataclass(frozen=True)
class Size:
    width: float
    height: float


@dataclass(frozen=True)
class Drawn:
    """``nodes``: the middle of the upper side of each. ``edges``: the points that each passes, from top to bottom."""

    width: float
    height: float
    nodes: list[tuple[float, float]]
    edges: list[list[tuple[float, float]]]


@dataclass
class _Graph:
    """Nodes and bends by number, bends behind the nodes."""

    widths: list[float]
    rank: list[int]
    chains: list[list[int]]
    """Of each edge: its beginning, its bends, its end."""
    above: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    below: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    bends_from: int = 0


def layered(sizes: Sequence[Size], edges: Sequence[tuple[int, int]]) -> Drawn:
    """Every edge leads from a lower number to a higher one."""
    if not sizes:
        return Drawn(0, 0, [], [])
    graph = _with_bends(sizes, edges)
    rows = _ordered(graph)
    x = _placed(graph, rows)
    tops, heights, height = _ranks(sizes, graph.rank[: len(sizes)])
    left = min(x[i] - graph.widths[i] / 2 for i in range(len(x)))
    right = max(x[i] + graph.widths[i] / 2 for i in range(len(x)))
    nodes = [
        (x[i] - left, tops[graph.rank[i]] + (heights[graph.rank[i]] - size.height) / 2) for i, size in enumerate(sizes)
    ]
    drawn = []
    for chain in graph.chains:
        first, last = chain[0], chain[-1]
        points = [(nodes[first][0], nodes[first][1] + sizes[first].height)]
        for bend in chain[1:-1]:
            top = tops[graph.rank[bend]]
            points += [(x[bend] - left, top), (x[bend] - left, top + heights[graph.rank[bend]])]
        drawn.append([*points, nodes[last]])
    return Drawn(right - left, height, nodes, drawn)


def _ranks(sizes: Sequence[Size], rank: Sequence[int]) -> tuple[list[float], list[float], float]:
    """Of each rank its top and its height; of all of them the height."""
    heights = [0.0] * (max(rank) + 1)
    for size, row in zip(sizes, rank, strict=True):
        heights[row] = max(heights[row], size.height)
    tops, y = [], 0.0
    for height in heights:
        tops.append(y)
        y += height + RANK_GAP
    return tops, heights, y - RANK_GAP


def rank_of(nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """By the longest path to a node; what nothing leads to stands right above who needs it first."""
    rank, entered = [0] * nodes, [False] * nodes
    for begin, end in sorted(edges, key=lambda edge: edge[1]):
        rank[end], entered[end] = max(rank[end], rank[begin] + 1), True
    for node in range(nodes):
        needed = [rank[end] for begin, end in edges if begin == node]
        if needed and not entered[node]:
            rank[node] = min(needed) - 1
    return rank


def _with_bends(sizes: Sequence[Size], edges: Sequence[tuple[int, int]]) -> _Graph:
    rank = rank_of(len(sizes), edges)
    graph = _Graph([size.width for size in sizes], rank, [], bends_from=len(sizes))
    bends = sum(rank[end] - rank[begin] - 1 for begin, end in edges) <= MOST_BENDS
    for begin, end in edges:
        chain = [begin]
        for row in range(rank[begin] + 1, rank[end]) if bends else ():
            chain.append(len(graph.widths))
            graph.widths.append(BEND)
            graph.rank.append(row)
        chain.append(end)
        graph.chains.append(chain)
        for upper, lower in pairwise(chain):
            graph.below[upper].append(lower)
            graph.above[lower].append(upper)
    return graph


def _ordered(graph: _Graph) -> list[list[int]]:
    """The nodes of each rank from left to right: sweeps down and up by the mean place of neighbours, the best kept."""
    rows: list[list[int]] = [[] for _ in range(max(graph.rank) + 1)]
    for node, rank in enumerate(graph.rank):
        rows[rank].append(node)
    best, fewest = [list(row) for row in rows], crossings(graph.below, rows)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        down = sweep % 2 == 0
        neighbours = graph.above if down else graph.below
        place = {node: float(i) for row in rows for i, node in enumerate(row)}
        for row in rows if down else rows[::-1]:
            mean = {n: sum(place[m] for m in neighbours[n]) / len(neighbours[n]) for n in row if neighbours[n]}
            row.sort(key=lambda n: mean.get(n, place[n]))
            place |= {node: float(i) for i, node in enumerate(row)}
        found = crossings(graph.below, rows)
        if found < fewest:
            best, fewest = [list(row) for row in rows], found
    return best


def crossings(below: dict[int, list[int]], rows: Sequence[Sequence[int]]) -> int:
    """Pairs of edges between neighbouring ranks that cross."""
    place = {node: i for row in rows for i, node in enumerate(row)}
    total = 0
    for row in rows:
        ends = [place[end] for node in row for end in sorted(below[node], key=place.__getitem__)]
        total += sum(earlier > later for i, later in enumerate(ends) for earlier in ends[:i])
    return total


def _placed(graph: _Graph, rows: Sequence[Sequence[int]]) -> list[float]:
    """Each as near to the middle of its neighbours as its row allows; bends pull bends most: lines become straight."""
    x = [0.0] * len(graph.widths)
    for row in rows:
        at = 0.0
        for node in row:
            x[node] = at + graph.widths[node] / 2
            at += graph.widths[node] + GAP
    for sweep in range(2 * SWEEPS):
        down = sweep % 2 == 0
        for row in rows if down else rows[::-1]:
            near = graph.above if down else graph.below
            wanted = [_wanted(graph, x, node, near) for node in row]
            for node, place in zip(row, spread([x for x, _ in wanted], wanted, graph, row), strict=True):
                x[node] = place
    return x


def _wanted(graph: _Graph, x: Sequence[float], node: int, near: dict[int, list[int]]) -> tuple[float, float]:
    """Where it should stand, and how much that counts."""
    others = near[node] or graph.above[node] or graph.below[node]
    if not others:
        return x[node], 0.5
    bend = node >= graph.bends_from
    weights = [4.0 if bend and other >= graph.bends_from else 1.0 for other in others]
    mean = sum(w * x[other] for w, other in zip(weights, others, strict=True)) / sum(weights)
    return mean, max(weights)


def spread(
    places: Sequence[float], wanted: Sequence[tuple[float, float]], graph: _Graph, row: Sequence[int]
) -> list[float]:
    """The nearest places, by the sum of squares, at which nodes of a row keep their distance."""
    offsets, at = [], 0.0
    for i, node in enumerate(row):
        at += (graph.widths[row[i - 1]] + graph.widths[node]) / 2 + GAP if i else 0.0
        offsets.append(at)
    blocks: list[tuple[float, float, int]] = []
    for place, (_, weight), offset in zip(places, wanted, offsets, strict=True):
        blocks.append((place - offset, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (one, w1, n1), (two, w2, n2) = blocks[-2:]
            blocks[-2:] = [((one * w1 + two * w2) / (w1 + w2), w1 + w2, n1 + n2)]
    means = [mean for mean, _, members in blocks for _ in range(members)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
