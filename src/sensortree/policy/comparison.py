"""`Comparison`: what a fit compared on held-out rows, and what it took."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from sensortree.policy.about import HeldOut
from sensortree.text import plain

# Names of the candidates that decide nothing.
NOTHING, ONE_SET = "nothing", "one set"


@dataclass(frozen=True)
class Comparison:
    """What a fit compared on rows that nothing was learned from, and what it took.

    Attributes
    ----------
    chosen : str
        The candidate whose model this is: a structure and a kind of leaf, "one set" for
        the same sensors for all, or "nothing".
    risk, cost : dict of str to float
        Mean risk, and mean price of what is bought, of each candidate that was compared.
    error : dict of str to float
        Paired standard error of the difference to the least risk.
    optimism : float
        How much too good the least risk is because it was chosen: `held_out` is
        corrected by it.
    n_rows : int
        Observations that were held out.
    removed : tuple of str
        Sensors without which the chosen tree is clearly better.
    not_compared : dict of str to str
        Candidates that were left out, and why.
    held_out : HeldOut or None
        What the delivered model is worth on held-out rows.
    informative : bool
        Whether what the best tree buys was seen to tell more of the target than what is
        known for nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> model = SensorTreeClassifier(cost_weight=0.05).fit(X, X[:, 0] > 0)
    >>> model.comparison_.chosen in model.comparison_.risk
    True
    >>> model.comparison_.held_out == model.about_.held_out
    True
    """

    chosen: str
    risk: dict[str, float]
    cost: dict[str, float]
    error: dict[str, float]
    optimism: float = 0.0
    n_rows: int = 0
    removed: tuple[str, ...] = ()
    not_compared: dict[str, str] = field(default_factory=dict)
    held_out: HeldOut | None = None
    informative: bool = True

    @property
    def leaf(self) -> str:
        """Kind of the leaves of the model; "" if the user named it.

        One set for all, and nothing, are compared with the leaves of the best tree.
        """
        decided = [name for name in self.risk if name not in (NOTHING, ONE_SET)]
        if self.chosen in decided:
            decided = [self.chosen]
        best = min(decided, key=lambda n: (round(self.risk[n], 12), self.cost[n]))
        return best.partition(", ")[2]

    def to_dict(self) -> dict[str, Any]:
        """Give the comparison as plain values for JSON."""
        form: dict[str, Any] = plain(asdict(self))
        return form

    def __str__(self) -> str:
        ranked = sorted(self.risk, key=self.risk.__getitem__)
        lines = [
            f"took {self.chosen}, by risk on {self.n_rows} held-out rows, ± of the "
            f"difference to the least:"
        ]
        lines += [
            f"  {name} {self.risk[name]:.4f} ± {self.error[name]:.4f}, "
            f"costs {self.cost[name]:.4g}"
            for name in ranked
        ]
        if self.optimism:
            lines.append(
                f"the least of {len(ranked)} is too good by {self.optimism:.4f}; the "
                f"held-out score is corrected for that"
            )
        if self.removed:
            lines.append(f"not needed, and removed: {', '.join(self.removed)}")
        lines += [f"not compared: {n}, {why}" for n, why in self.not_compared.items()]
        return "\n".join(lines)
