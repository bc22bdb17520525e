"""What pages are made of: folding, layers of a drawing, rectangles, words, escaping."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from typing import Any

import pytest
from markupsafe import Markup

from uaccel.report import page_memory
from uaccel.report.page import embedded
from uaccel.report.page_graph import GAP, FoldedSteps, Size, folds, layered, network_of, rank_of
from uaccel.report.page_memory import TreemapBox, treemap
from uaccel.report.stored_run import StoredRun
from uaccel.report.svg import ellipsize, join_words, percent, size, tag, ticks


def test_repeated_blocks_are_folded() -> None:
    resnet = ["conv", "pool", *["conv3", "conv1", "add"] * 4, "dense", *["a", "b"], "c"]
    assert folds(resnet) == [FoldedSteps(2, 3, 4)]
    assert folds(["conv"] * 5 + ["x"] + ["conv"] * 3) == [FoldedSteps(0, 1, 5)], "three alike are no block"
    assert folds(list(range(50))) == []
    assert folds([]) == []
    inner = ["a", "a", "b"] * 3
    assert folds(inner) == [FoldedSteps(0, 3, 3)], "the whole rather than its parts"


def test_folds_do_not_overlap_and_are_what_they_say() -> None:
    for seed in range(50):
        drawn = random.Random(seed)
        steps = [drawn.choice("abc") for _ in range(40)]
        found = folds(steps)
        for fold in found:
            block = steps[fold.first : fold.first + fold.period]
            assert steps[fold.first : fold.end] == block * fold.times
        assert all(one.end <= other.first for one, other in itertools.pairwise(found))


def test_readers_stand_below_makers_and_boxes_apart() -> None:
    for seed in range(20):
        drawn = random.Random(seed)
        count = drawn.randint(2, 30)
        edges = [(drawn.randrange(i), i) for i in range(1, count)]
        edges += [(drawn.randrange(i), i) for i in range(1, count) if drawn.random() < 0.3]
        edges = list(dict.fromkeys(edges))
        sizes = [Size(drawn.randint(40, 200), drawn.randint(20, 90)) for _ in range(count)]
        found = layered(sizes, edges)
        boxes = [
            (x - s.width / 2, y, x + s.width / 2, y + s.height) for (x, y), s in zip(found.nodes, sizes, strict=True)
        ]
        for begin, end in edges:
            assert boxes[begin][3] < boxes[end][1]
        for one, other in itertools.combinations(boxes, 2):
            beside = one[2] + GAP / 2 <= other[0] or other[2] + GAP / 2 <= one[0]
            assert beside or one[3] <= other[1] or other[3] <= one[1]
        assert all(x >= -0.01 and y >= 0 and z <= found.width + 0.01 and w <= found.height for x, y, z, w in boxes)
        for (begin, end), points in zip(edges, found.edges, strict=True):
            assert points[0] == pytest.approx((found.nodes[begin][0], boxes[begin][3]))
            assert points[-1] == found.nodes[end]
            assert all(upper[1] <= lower[1] for upper, lower in itertools.pairwise(points))


def test_a_chain_is_straight_and_a_short_cut_goes_beside_it() -> None:
    found = layered([Size(100, 40)] * 4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    (a, b, c, d), bends = [x for x, _ in found.nodes], found.edges[3][1:-1]
    assert b == pytest.approx(c)
    assert abs(a - d) < 60
    assert all(abs(x - b) > 50 for x, _ in bends), "the line passes through no box"


def test_what_nothing_leads_to_stands_above_its_reader() -> None:
    assert rank_of(4, [(0, 1), (1, 3), (2, 3)]) == [0, 1, 1, 2]


@pytest.mark.parametrize("sizes", [[1], [6, 6, 4, 3, 2, 2, 1], [1000, 1], [1] * 30, [5, 1e-3]])
def test_areas_are_as_given_and_fill_the_box(sizes: list[float]) -> None:
    box = TreemapBox(10, 20, 300, 200)
    found = treemap(sizes, box)
    for bytes_, at in zip(sizes, found, strict=True):
        assert at.area == pytest.approx(box.area * bytes_ / sum(sizes), rel=1e-6)
        assert at.x >= box.x - 1e-6
        assert at.y >= box.y - 1e-6
        assert at.x + at.width <= box.x + box.width + 1e-6
        assert at.y + at.height <= box.y + box.height + 1e-6
    for one, other in itertools.combinations(found, 2):
        wide = min(one.x + one.width, other.x + other.width) - max(one.x, other.x)
        high = min(one.y + one.height, other.y + other.height) - max(one.y, other.y)
        assert wide < 1e-6 or high < 1e-6, "two overlap"
    assert treemap([], box) == []


def test_words() -> None:
    assert [size(n) for n in (None, 0, 10239, 10240, 3 << 20)] == [
        "not known",
        "0 B",
        "10,239 B",
        "10.0 KiB",
        "3.0 MiB",
    ]
    assert [percent(*of) for of in ((0, 0), (0, 7), (1, 9999), (1, 1000), (1, 3))] == [
        "0 %",
        "0 %",
        "< 0.1 %",
        "0.1 %",
        "33 %",
    ]
    assert join_words(["a", "b", "c"]) == "a, b and c"
    assert ellipsize("conv_2d_0_long_name", 9) == "conv…name"
    assert ticks(437) == [0, 100, 200, 300, 400, 500]
    assert ticks(0) == [0, 1]


def test_what_goes_into_a_page_is_escaped() -> None:
    hostile = "</script><script>alert(1)</script><!-- & \u2028 \"'"
    text = embedded({hostile: [hostile]})
    assert not set("<>&\u2028") & set(text)
    assert tag("text", hostile, x=1, title=hostile) == Markup(
        '<text x="1" title="&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;!-- &amp; \u2028 &#34;&#39;">'
        "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;!-- &amp; \u2028 &#34;&#39;</text>"
    )


def test_the_operators_of_a_region_are_drawn_each() -> None:
    def row(name: str, region: str | None = None) -> dict[str, Any]:
        shared = {"op": "conv2d", "engine": "npu", "reason": "r", "macs": 10, "outputs": [[1, 4]]}
        return {"name": name, "region": region, "cycles": 3, "instructions": 5, **shared}

    inner = [
        {"name": "a", "reads": [], "outside": ["x"], "results": ["va"]},
        {"name": "b", "reads": ["a"], "outside": [], "results": ["vb"]},
        {"name": "c", "reads": ["a", "b"], "outside": ["y"], "results": ["vc"]},
    ]
    region = {"name": "a_to_c", "inputs": ["x", "y"], "outputs": ["vb", "vc"], "inner": inner}
    last = {"name": "d", "inputs": ["vb"], "outputs": ["vd"]}
    layers = [row("a", "a_to_c"), row("b", "a_to_c"), row("c", "a_to_c"), row("d")]
    network = network_of(StoredRun({"layers": layers, "graph": {"layers": [region, last], "values": {}}}))
    names = [node.name for node in network.nodes]
    assert names == ["x", "y", "a", "b", "c", "d"]
    edges = {(names[begin], names[end]) for begin, end in network.edges}
    assert edges == {("x", "a"), ("y", "c"), ("a", "b"), ("a", "c"), ("b", "c"), ("b", "d")}
    assert [node.target for node in network.nodes[2:]] == ["layer-0"] * 3 + ["layer-1"]


def test_a_page_says_how_to_see_every_symbol() -> None:
    row = {"name": "a", "op": "conv2d", "engine": "cpu", "reason": "r", "code": 64}
    data = {"layers": [row], "constants": [{"symbol": "w", "bytes": 10, "layers": ["a"]}]}
    shown = {what: page_memory.flash(StoredRun(data | {"flash": has})) for what, has in FLASH.items()}
    told = {what: made["hint"] for what, made in shown.items() if isinstance(made, Mapping)}
    assert told["not asked"].startswith("For every symbol run the model with 'uaccel run MODEL --details --json'")
    assert told["not known"] == "This board's build tells no symbols; an emulated board's does."


FLASH: dict[str, dict[str, Any]] = {"not asked": {"weights": 10}, "not known": {"weights": 10, "symbols": None}}
