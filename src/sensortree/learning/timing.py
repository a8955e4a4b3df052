"""`FitReport`: where the time of a fit went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sensortree.progress import Stopwatch
from sensortree.text import aligned, plain

STAGES = (
    "reading",
    "leaf choice",
    "leaf classifiers",
    "search",
    "comparing candidates",
    "decisions",
    "finishing",
    "detours",
)
# Stages before a fit begins.
PREPARING = ("reading", "leaf choice")


@dataclass(frozen=True)
class FitReport:
    """Where the time of a fit went, by the clock on the wall.

    Attributes
    ----------
    seconds : dict of str to float
        By stage: "reading" the rows; "leaf choice", with ``classifier="auto"``; "leaf
        classifiers", fitted and judged whenever one is first asked for; "search" for a
        tree; "comparing candidates", on held-out rows; "decisions"; "finishing", the policy
        with its flow of examples; and "detours" for outages. For a model fitted at a
        budget, "curve" too: all that was measured on held-out folds.
    n_judged : int
        Subsets of sensors whose classifier was judged out of fold.
    n_kept : int
        Classifiers that the fitted model holds.
    n_learned : int
        How often the decisions of a tree were learned, by one linear program each where
        the method has one; most of them only to be compared.

    Examples
    --------
    >>> from sensortree.learning.timing import FitReport
    >>> print(FitReport({"reading": 0.25, "search": 1.5}, 12, 3, 8))
    stage    seconds
    reading     0.25
    search      1.50
    all         1.75
    12 classifiers judged, 3 kept; decisions learned 8 times
    """

    seconds: Mapping[str, float]
    n_judged: int
    n_kept: int
    n_learned: int

    def to_dict(self) -> dict[str, Any]:
        """Give the report as plain values for JSON."""
        form: dict[str, Any] = plain(asdict(self))
        return form

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        lines = [
            [name, f"{s:.2f}"] for name, s in {**self.seconds, "all": total}.items()
        ]
        return (
            f"{aligned(('stage', 'seconds'), lines)}\n"
            f"{self.n_judged} classifiers judged, {self.n_kept} kept; "
            f"decisions learned {self.n_learned} times"
        )


@dataclass(frozen=True)
class Mark:
    """What a stopwatch showed when a fit began: others may have used it before."""

    seconds: Mapping[str, float]
    counts: Mapping[str, int]

    @classmethod
    def now(cls, watch: Stopwatch) -> Mark:
        """Note what it shows; what prepares the rows was for this fit."""
        seconds = {s: t for s, t in watch.seconds.items() if s not in PREPARING}
        return cls(seconds, dict(watch.counts))

    def report(self, watch: Stopwatch, n_kept: int) -> FitReport:
        """What was done since."""
        return FitReport(
            {s: float(watch.seconds[s] - self.seconds.get(s, 0.0)) for s in STAGES},
            watch.counts["judged"] - self.counts.get("judged", 0),
            n_kept,
            watch.counts["learned"] - self.counts.get("learned", 0),
        )
