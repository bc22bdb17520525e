"""Which options of a site are worth measuring, and in which order: by what each is expected to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from uaccel.basics.favour import Favour
from uaccel.cpu_kernels.choice import Choice, Option, Work
from uaccel.cpu_kernels.costs import Estimated

Asked = dict[tuple[str, tuple[str, ...]], tuple[str, ...]]
"""By a site and the labels of its options: those that are worth measuring, the most promising first."""


@dataclass(frozen=True)
class Ranked:
    """Takes the option of rank ``number`` at each site, or the most promising one where fewer are worth measuring.

    ``most``: so many are, of those whose cost is known by estimate; None for all. Those without an estimate all are.
    Of what a planner varies, only what it says to be better is.
    """

    estimated: Estimated
    number: int = 0
    most: int | None = None
    asked: Asked = field(default_factory=dict, compare=False)

    def __call__(self, site: str, options: Sequence[Option], work: Work) -> tuple[int, str]:
        first, why = self.estimated(site, options, work)
        estimates = [self._estimate(option, work) for option in options]
        order = self._order(first, estimates)
        if self.most is not None and options[first].planned is not None:
            order = [n for n in order if n == first or (estimates[n] or 0) < (estimates[first] or 0)]
        self.asked[site, tuple(option.label for option in options)] = tuple(options[n].label for n in order)
        if 0 < self.number < len(order):
            return order[self.number], "its turn to be measured"
        return first, why

    def worth(self, choice: Choice) -> tuple[str, ...]:
        """Of a choice that was made by this, in the order of rank; without a choice the one option."""
        return self.asked.get((choice.site, choice.options), choice.options)

    def _estimate(self, option: Option, work: Work) -> float | None:
        return self.estimated.of(option, work) if option.planned is None else option.planned()

    def _order(self, first: int, estimates: Sequence[float | None]) -> list[int]:
        """What would be taken unmeasured, then what nobody can estimate, then the others by estimate.

        Where bytes count, a slow option may be the one to take: then all are worth it.
        """
        others = [number for number in range(len(estimates)) if number != first]
        unknown = [number for number in others if estimates[number] is None]
        known = sorted((n for n in others if estimates[n] is not None), key=lambda n: (estimates[n] or 0.0, n))
        if self.most is not None and self.estimated.favour is not Favour.size:
            known = known[: max(0, self.most - (estimates[first] is not None))]
        return [first, *unknown, *known]
