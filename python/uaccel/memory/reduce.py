"""What is hard in a problem: its core. Everything outside the core fits whatever the core looks like.

A block surely fits below a limit if its neighbours leave more bytes free than can be lost in gaps too small for it.
Such a block can be placed last, so it is taken out, and its neighbours are looked at again. In a network this leaves
little more than the layers near the memory peak, usually in several groups that never meet.
"""

from __future__ import annotations

from uaccel.memory.problem import Problem


def easy_blocks(problem: Problem, limit: int) -> list[int]:
    """Blocks that fit below ``limit`` if placed by first fit after the others, in this order."""
    sizes, alignments, neighbours = problem.sizes, problem.alignments, problem.neighbours
    taken = [sum(sizes[j] for j in near) for near in neighbours]
    count = [len(near) for near in neighbours]
    easy: dict[int, None] = {}
    waiting = list(range(len(sizes)))
    while waiting:
        i = waiting.pop()
        if i in easy:
            continue
        gap = sizes[i] + alignments[i] - 2  # the widest gap above a neighbour in which the block may still not fit
        if limit - taken[i] < count[i] * gap + sizes[i]:
            continue
        easy[i] = None
        for j in neighbours[i]:
            if j not in easy:
                taken[j] -= sizes[i]
                count[j] -= 1
                waiting.append(j)
    return list(reversed(easy))
