"""Draws the network as a graph, with repeated blocks folded, and lists the details of each layer."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from markupsafe import Markup

from uaccel.report.stored_run import LayerRow, StoredRun
from uaccel.report.svg import DETAILS, Shown, count, drawing, ellipsize, percent, shape, size, tag, text, title

# Folds: blocks of steps that are repeated right behind each other, and look alike in the drawing.

LONGEST_PERIOD = 64  # Steps of a block, at most.
FEWEST = 4  # Steps that a fold stands for, at least.


@dataclass(frozen=True)
class FoldedSteps:
    """States that from step ``first`` on a block of ``period`` steps comes ``times`` times."""

    first: int
    period: int
    times: int

    @property
    def end(self) -> int:
        return self.first + self.period * self.times


def folds(signatures: Sequence[Hashable]) -> list[FoldedSteps]:
    """Finds folds that do not overlap. Greedy from the first step on: at each place it takes the fold that covers the
    most steps, and of equal ones the one with the shortest block, since periods are tried in rising order."""
    found: list[FoldedSteps] = []
    at = 0
    while at < len(signatures):
        best = _best(signatures, at)
        if best is None:
            at += 1
        else:
            found.append(best)
            at = best.end
    return found


def _best(signatures: Sequence[Hashable], at: int) -> FoldedSteps | None:
    best: FoldedSteps | None = None
    for period in range(1, min(LONGEST_PERIOD, (len(signatures) - at) // 2) + 1):
        times = 1
        block = signatures[at : at + period]
        while signatures[at + times * period : at + (times + 1) * period] == block:
            times += 1
        covered = period * times
        if times > 1 and covered >= FEWEST and (best is None or covered > best.end - best.first):
            best = FoldedSteps(at, period, times)
    return best


# Layered drawing of a graph (Sugiyama's method): who reads a tensor stands below who makes it.
#
# 1. A node's rank is the length of the longest path to it, so that every edge leads downwards.
# 2. An edge over several ranks gets a bend in each rank between. Then every edge joins neighbouring ranks, and bends
#    take part in steps 3 and 4 like narrow nodes, which keeps lines off the boxes.
# 3. The order within each rank is chosen for few crossings.
# 4. Nodes are moved under their neighbours as far as the order and their widths allow, so that lines become straight.

GAP, RANK_GAP, BEND = 24.0, 30.0, 10.0
SWEEPS = 8  # Passes over all ranks, down and up by turns, to order them; twice as many place them.
MOST_BENDS = 20_000  # With more, long edges are drawn straight, since the search takes time for each bend.


@dataclass(frozen=True)
class Size:
    """Holds the extent of a box."""

    width: float
    height: float


@dataclass(frozen=True)
class Drawn:
    """Holds a drawing: ``nodes`` has the middle of each box's upper side, ``edges`` the points of each line from top to
    bottom."""

    width: float
    height: float
    nodes: list[tuple[float, float]]
    edges: list[list[tuple[float, float]]]


@dataclass
class _Graph:
    """Nodes and bends by number, bends behind the nodes."""

    widths: list[float]
    rank: list[int]
    chains: list[list[int]]  # For each edge: its beginning, its bends, its end.
    above: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    below: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    bends_from: int = 0


def layered(sizes: Sequence[Size], edges: Sequence[tuple[int, int]]) -> Drawn:
    """Draws a graph whose edges all lead from a lower number to a higher one."""
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
    """The top and the height of each rank, and the height of the whole drawing."""
    heights = [0.0] * (max(rank) + 1)
    for box, row in zip(sizes, rank, strict=True):
        heights[row] = max(heights[row], box.height)
    tops, y = [], 0.0
    for height in heights:
        tops.append(y)
        y += height + RANK_GAP
    return tops, heights, y - RANK_GAP


def rank_of(nodes: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Ranks of nodes by the longest path to each. A node that nothing leads to stands right above its first reader.

    Edges are visited by their end. All edges into a node come from lower numbers, so its own rank is final before it is
    used. To lower a source afterwards keeps every edge leading downwards.
    """
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
    """Orders each rank from left to right for few crossings, by the barycentre heuristic.

    The exact problem is NP-hard. Each sweep sorts every rank by the mean place of the neighbours in the rank that the
    sweep has just passed. Sorting is stable, so ties stay as they are. A sweep may also add crossings: so the best
    order seen is returned, and the search ends at once when it has no crossing.
    """
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
    """Counts the pairs of edges between neighbouring ranks that cross. With edges sorted by their upper ends, those are
    the pairs whose lower ends are in the opposite order (inversions)."""
    place = {node: i for row in rows for i, node in enumerate(row)}
    total = 0
    for row in rows:
        ends = [place[end] for node in row for end in sorted(below[node], key=place.__getitem__)]
        total += sum(earlier > later for i, later in enumerate(ends) for earlier in ends[:i])
    return total


def _placed(graph: _Graph, rows: Sequence[Sequence[int]]) -> list[float]:
    """Finds the horizontal middle of each node: as near to the mean of its neighbours as its row allows.

    It begins packed from the left. Then each sweep, down or up, moves the nodes of a rank towards those of the rank
    before it. Bends pull bends four times as strongly as nodes do, so that long edges become straight.
    """
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
    """The place that a node should have, and the weight of that wish."""
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
    """Places the nodes of a row near the wanted ``places``, with at least their widths and ``GAP`` between them.

    Minimises the weighted sum of squared distances. Less its offset in the packed row, a node's place must not be less
    than its left neighbour's: that is isotonic regression, which pooling of adjacent violators solves exactly.
    ``blocks`` holds (mean, weight, nodes) of groups that stand packed; their means never fall from left to right.
    """
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


# The section: a box for each layer, coloured by its engine and higher the more the layer takes.

WIDTH, LOW, HIGH, MARGIN = 216.0, 42.0, 96.0, 10.0
LETTERS: Final = 26
# Letters of a tensor's name in a table: names that converters give fused operators have hundreds.
LONGEST: Final = 48
FIGURES: Final = (
    ("CPU cycles, estimated", "cycles_estimated"),
    ("CPU instructions", "instructions"),
    ("Accelerator cycles", "cycles"),
)
FOLDED_FROM: Final = 30  # Nodes from which on repeated blocks are folded as the page opens.


@dataclass(frozen=True)
class DrawnNode:
    """Describes a box. ``target`` names the part of the page with its details; ``cost`` is what it takes, in the run's
    unit. Nodes of equal ``signature`` look alike."""

    target: str
    name: str
    words: str
    class_: str
    engine: str = ""
    cost: float = 0
    signature: tuple[object, ...] = ()


@dataclass(frozen=True)
class DrawnNetwork:
    """Holds a graph whose first nodes are the model's inputs; an edge leads from a lower number to a higher one."""

    nodes: list[DrawnNode]
    edges: list[tuple[int, int]]
    inputs: int


def graph(run: StoredRun) -> Shown:
    """What the graph of the network shows."""
    if not run.section("graph"):
        return f"This result does not hold the model's graph; {DETAILS}."
    full = network_of(run)
    found = folds([node.signature for node in full.nodes[full.inputs :]])
    pictures = [("full", picture(full, "every layer"))]
    if found:
        pictures.append(("folded", picture(folded(full, run, found), "repeated blocks folded")))
    return {
        "run": run,
        "pictures": pictures,
        "shown": "folded" if found and len(full.nodes) > FOLDED_FROM else "full",
        "folds": [_fold(full, number, fold) for number, fold in enumerate(found)],
        "steps": [details(run, step) for step in run.steps],
    }


def network_of(run: StoredRun) -> DrawnNetwork:
    """Builds the graph: the model's inputs, then its layers, each operator of a region on its own, and who reads whom.

    An input of a region leads to the operators that read it from outside. If they are not known, it leads to all that
    read anything from outside, or to the region's first operator.
    """
    maker = {value: step for step in run.steps for value in step.outputs}
    read = dict.fromkeys(value for step in run.steps for value in step.inputs if value not in maker)
    nodes = [_input(run, name) for name in read]
    source = {name: i for i, name in enumerate(read)}
    edges: dict[tuple[int, int], None] = {}
    for step in run.steps:
        first = len(nodes)
        nodes += _nodes(run, step)
        inner = _inner(step)
        place = {entry["name"]: first + i for i, entry in enumerate(inner)}
        for entry in inner:
            edges |= {(place[other], place[entry["name"]]): None for other in entry["reads"]}
        for value in step.inputs:
            readers: Sequence[Mapping[str, Any]] = [entry for entry in inner if value in entry["outside"]]
            readers = readers or [entry for entry in inner if entry["outside"]] or inner[:1]
            if value in source:
                edges |= {(source[value], place[entry["name"]]): None for entry in readers}
        last = place[inner[-1]["name"]]
        for value in step.outputs:
            source[value] = next((place[e["name"]] for e in inner if value in e["results"]), last)
    return DrawnNetwork(nodes, [edge for edge in edges if edge[0] < edge[1]], len(read))


def _inner(step: LayerRow) -> Sequence[Mapping[str, Any]]:
    """The operators that a step computes; a step of one operator stands for itself."""
    alone = {"name": step.name, "reads": [], "outside": step.inputs, "results": step.outputs}
    found: Sequence[Mapping[str, Any]] = step.facts.get("inner") or [alone]
    return found


def _input(run: StoredRun, name: str) -> DrawnNode:
    value = run.values.get(name, {})
    words = f"{value.get('dtype', '')} {shape(value.get('shape', ()))}"
    return DrawnNode("", str(value.get("tensor") or name), words, "io")


def _nodes(run: StoredRun, step: LayerRow) -> list[DrawnNode]:
    """The nodes of a step, one for each operator. A region's cost is divided in proportion to their products, which is
    an estimate."""
    class_ = run.engine_class(step.engine) + (" view" if step.facts.get("view") else "")
    target, rows = f"layer-{step.number}", {row["name"]: row for row in step.rows}
    names = [entry["name"] for entry in _inner(step)]
    whole = step.cost if run.total else step.macs
    found = []
    for name in names:
        row = rows.get(name, step.rows[-1])
        shapes = [shape(extent) for extent in row.get("outputs", ())]
        alone = len(names) == 1
        words = f"{percent(step.cost, run.total)} · " if run.total and alone else ""
        cost = whole if alone else whole * (row.get("macs") or 0) / step.macs if step.macs else 0
        signature = (row["op"], step.engine, tuple(shapes), row.get("macs"), alone)
        found.append(DrawnNode(target, name, words + " ".join(shapes[:2]), class_, step.engine, cost, signature))
    return found


def folded(network: DrawnNetwork, run: StoredRun, found: Sequence[FoldedSteps]) -> DrawnNetwork:
    """The graph with one node in place of each fold. Edges inside a fold vanish, and equal ones become one."""
    place: dict[int, int] = {}
    kept: list[DrawnNode] = []
    begins = {network.inputs + fold.first: (number, fold) for number, fold in enumerate(found)}
    for i, node in enumerate(network.nodes):
        if i in begins:
            number, fold = begins[i]
            place |= {network.inputs + member: len(kept) for member in range(fold.first, fold.end)}
            kept.append(_folded_node(network, run, number, fold))
        elif i not in place:
            place[i] = len(kept)
            kept.append(node)
    pairs = dict.fromkeys((place[begin], place[end]) for begin, end in network.edges if place[begin] != place[end])
    return DrawnNetwork(kept, list(pairs), network.inputs)


def _members(network: DrawnNetwork, fold: FoldedSteps) -> list[DrawnNode]:
    return network.nodes[network.inputs + fold.first : network.inputs + fold.end]


def _folded_node(network: DrawnNetwork, run: StoredRun, number: int, fold: FoldedSteps) -> DrawnNode:
    members = _members(network, fold)
    cost = sum(node.cost for node in members)
    share = f"{percent(cost, run.total)} · " if run.total else ""
    name, words = f"{fold.times} × {_block(network, fold)}", f"{share}{len(members)} layers"
    return DrawnNode(f"fold-{number}", name, words, f"fold {run.engine_class(members[0].engine)}", "", cost)


def _block(network: DrawnNetwork, fold: FoldedSteps) -> str:
    ops = [str(node.signature[0]) for node in _members(network, fold)[: fold.period] if "view" not in node.class_]
    names = list(dict.fromkeys(ops))
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _fold(network: DrawnNetwork, number: int, fold: FoldedSteps) -> dict[str, Any]:
    nodes = _members(network, fold)
    blocks = [nodes[i : i + fold.period] for i in range(0, len(nodes), fold.period)]
    return {"number": number, "title": f"{fold.times} × {_block(network, fold)}", "blocks": blocks}


def picture(network: DrawnNetwork, what: str) -> Markup:
    """Draws a network. Heights grow with the square root of the cost: linearly, one large layer would make all others
    equally low."""
    nodes = network.nodes
    most = max((node.cost for node in nodes), default=0) or 1
    sizes = [Size(WIDTH, LOW + (HIGH - LOW) * math.sqrt(node.cost / most)) for node in nodes]
    drawn = layered(sizes, network.edges)
    lines = [tag("path", d=_path(points), class_="edge") for points in drawn.edges]
    boxes = [_box(node, size_, at) for node, size_, at in zip(nodes, sizes, drawn.nodes, strict=True)]
    inside = tag("g", *lines, *boxes, transform=f"translate({MARGIN:g} {MARGIN:g})")
    width, height = drawn.width + 2 * MARGIN, drawn.height + 2 * MARGIN
    svg = drawing(round(width), round(height), f"The graph of the model, {what}: {len(nodes)} nodes", [inside], "graph")
    return Markup(str(svg).replace('role="img"', 'role="group"', 1))


def _path(points: Sequence[tuple[float, float]]) -> str:
    """A line's SVG path. A bend has two points, at the top and the bottom of its rank: odd steps are straight lines
    through a rank, even ones are curves from rank to rank."""
    (x, y), *rest = points
    words = [f"M{x:.0f} {y:.0f}"]
    for i, (to_x, to_y) in enumerate(rest):
        straight = abs(to_x - x) < 1 or (i % 2 == 1 and to_x == x)
        middle = (y + to_y) / 2
        curve = f"C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"
        words.append(f"L{to_x:.0f} {to_y:.0f}" if straight else curve)
        x, y = to_x, to_y
    return "".join(words)


def _box(node: DrawnNode, box: Size, at: tuple[float, float]) -> Markup:
    x, y = at[0] - box.width / 2, at[1]
    middle = box.height / 2
    parts = [
        tag("rect", width=box.width, height=box.height, rx=6),
        title(f"{node.name}, {node.words}"),
        text(box.width / 2, middle - 3, ellipsize(node.name, LETTERS), "middle", "name"),
        text(box.width / 2, middle + 13, ellipsize(node.words, LETTERS + 4), "middle", "aside"),
    ]
    if node.class_.startswith("fold"):
        parts.insert(0, tag("rect", x=5.0, y=5.0, width=box.width, height=box.height, rx=6, class_="behind"))
    role = {"role": "button", "tabindex": "-1", "data_open": node.target} if node.target else {}
    place = f"translate({x:.0f} {y:.0f})"
    label = f"{node.name}, {node.words}"
    return tag("g", *parts, class_=f"node {node.class_}", transform=place, aria_label=label, **role)


def details(run: StoredRun, step: LayerRow) -> dict[str, Any]:
    """The details that the page shows of one layer."""
    facts = step.facts
    return {
        "id": f"layer-{step.number}",
        "step": step,
        "class": run.engine_class(step.engine),
        "reason": step.rows[0]["reason"],
        "inputs": [_value(run, name) for name in step.inputs],
        "outputs": [_value(run, name) for name in step.outputs],
        "numbers": list(_numbers(run, step)),
        "choice": facts.get("choice"),
        "rejections": [(row["name"], _rejections(run.decisions.get(row["name"], {}))) for row in step.rows],
        "functions": _functions(run, step),
        "source": run.section("sources").get(step.name),
        "hot": [_spot(spot) for spot in run.section("hot").get(step.name) or ()],
        "no_source": f"The C of layers is not in this result; {DETAILS}." if "sources" not in run.data else "",
    }


def _value(run: StoredRun, name: str) -> dict[str, Any]:
    value = run.values.get(name, {})
    memory = value.get("memory")
    place = f"{value.get('pool') or memory} + {value.get('offset')}" if memory in ("arena", "state") else memory
    scale = value.get("scale")
    return {
        "tensor": ellipsize(str(value.get("tensor") or name), LONGEST),
        "whole": value.get("tensor") or name,
        "type": f"{value.get('dtype', '')} {shape(value.get('shape', ()))}",
        "scale": _scale(scale),
        "zero_point": value.get("zero_point"),
        "bytes": count(value.get("bytes")),
        "place": place,
    }


def _scale(scale: Any) -> str:
    if isinstance(scale, list):
        return f"{len(scale)} scales from {min(scale):.4g} to {max(scale):.4g}" if scale else ""
    return "" if scale is None else f"{scale:.6g}"


def _numbers(run: StoredRun, step: LayerRow) -> list[tuple[str, str]]:
    found = [("Multiply-accumulates", count(step.macs))] if step.macs else []
    for name, key in FIGURES:
        known = [row[key] for row in step.rows if row.get(key) is not None]
        if known and (sum(known) or key != "cycles"):
            found.append((name, count(sum(known))))
    if run.total:
        found.append(("Share of the time", percent(step.cost, run.total)))
    if step.macs and step.cost and run.unit in ("cycles", "instructions"):
        found.append((f"{run.unit.capitalize()} a product", f"{step.cost / step.macs:.3g}"))
    if step.code:
        found.append(("Code of its own", size(step.code)))
    if step.name in run.constants:
        found.append(("Constants", size(run.constants[step.name])))
    if step.facts.get("scratch"):
        found.append(("Scratch", size(step.facts["scratch"])))
    return found


def _rejections(decision: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each reason once, with the accelerator and the operation that give it."""
    found: dict[tuple[str, str], None] = {}
    for rejection in decision.get("rejections", ()):
        found[rejection["accelerator"], rejection["reason"]] = None
    return list(found)


def _spot(spot: Mapping[str, Any]) -> dict[str, Any]:
    """Describes a hot spot: a loop, or a function's code outside of its loops."""
    where = f"loop at +{spot['offset']:#x} in" if spot["loop"] else "outside of loops in"
    times = f", {count(spot['times'])} {'rounds' if spot['loop'] else 'times'}" if spot["times"] > 1 else ""
    words = f"{count(spot['cycles'])} cycles, {count(spot['instructions'])} instructions{times}"
    share = percent(spot["share"], 1)
    return {"where": where, "function": spot["function"], "share": share, "words": words, "listing": spot["listing"]}


def _functions(run: StoredRun, step: LayerRow) -> list[tuple[str, str]]:
    """The functions that a layer calls, with their sizes if the result has the linker's symbols."""
    sizes = {symbol["name"]: symbol["bytes"] for symbol in run.symbols() if symbol["part"] == "code"}
    names = [] if step.facts.get("view") else [f"layer_{step.name}", *step.facts.get("functions", ())]
    return [(name, size(sizes[name]) if name in sizes else "in its caller") for name in names] if sizes else []
