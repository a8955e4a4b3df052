"""`Explanation`: one row's way through the tree, and why it went that way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from sensortree.policy.batch import Crossing, Walk, send
from sensortree.policy.policy import Policy
from sensortree.policy.reasons import (
    Change,
    Contribution,
    Influence,
    belief_words,
    changes_of,
    class_words,
    contributions_to,
    cost_words,
    influence_words,
    influences_on,
    number_words,
    purchase_words,
    shares_of,
    stop_words,
    would_change,
)
from sensortree.reports.drawing import boxed, escaped, page
from sensortree.reports.tables import TextTable
from sensortree.reports.tree_display import PathDisplay
from sensortree.reports.words import percent, range_words
from sensortree.sensors.table import Table
from sensortree.text import chance_words, plain
from sensortree.tree.forks import Fork, Way, fork_at, leaves_behind
from sensortree.tree.paths import path_bill
from sensortree.types import Array

SHOWN = 3  # contributions of a node in the text
NOTE = (
    "The thick way is the row's. A margin is the least of the scores that speak for a way; "
    "only that of the way that was decided is above 0. A double click zooms into the "
    "picture, and out again."
)


# what was decided -------------------------------------------------------------------------


@dataclass(frozen=True)
class Purchase:
    """A sensor that was bought, and the price that it charged."""

    sensor: str
    price: float


@dataclass(frozen=True)
class Passage:
    """A node that the row passed, and what it decided there."""

    node: int
    known: tuple[str, ...]  # sensors known there
    spent: float  # their price
    score: float  # g_j: above 0 takes the positive child
    taken: str  # "negative" or "positive": what the score decided
    # Whether the row could not pay for that: it went to the best place within max_cost.
    rerouted: bool
    # Largest first; with the intercept they add up to the score.
    contributions: tuple[Contribution, ...]
    # The same as plain words ("smoking = former"), all that comes from one column
    # together, largest first.
    influences: tuple[Influence, ...]
    intercept: float
    bought: tuple[Purchase, ...]  # what the row bought next
    # What the other branch would have cost from here, at least and at most.
    other_cost: tuple[float, float]
    # Of the training rows that came to the node, the share that went each way, if any.
    share_negative: float | None
    share_positive: float | None

    def _details(self, is_last: bool) -> list[str]:
        """Lines of text with the score, and what adds most to it."""
        sign = "> 0" if self.taken == "positive" else "≤ 0"
        action = bought_words(self.bought) or ("stop" if is_last else "go on")
        if self.rerouted:
            action = f"too dear, so the best within max_cost: {action}"
        lines = [f"node {self.node}: g = {self.score:+.3g} {sign}, {action}"]
        for c in self.contributions[:SHOWN]:
            value = "missing" if c.value is None else f"{c.value:.4g}"
            lines.append(f"  {c.contribution:+.3g}  {c.name} = {value}")
        rest = self.contributions[SHOWN:]
        if rest:
            total = sum(c.contribution for c in rest)
            lines.append(f"  {total:+.3g}  {len(rest)} more")
        return [*lines, f"  {self.intercept:+.3g}  intercept"]


@dataclass(frozen=True)
class Branch:
    """A way out of a fork, for one row."""

    place: int  # where it leads: a leaf, or ``~node`` for a node that knows more
    # What is bought on it, at the row's prices; nothing where it stops.
    bought: tuple[Purchase, ...]
    taken: bool  # whether the row went this way
    # The least of the scores that speak for it, each with its sign: g_j where the way
    # takes the positive child, -g_j where it takes the negative. It is 0 or more for
    # the way that was decided, and 0 or less for all others.
    margin: float
    cost: tuple[float, float]  # what it costs from here to a leaf, at least and at most
    # Of the training rows that came to the fork, the share that went this way, if any.
    share: float | None
    # Training rows that went this way, and how many of them are answered otherwise in
    # the end than at the fork; None if none did, or this was not counted.
    change: Change | None = None
    # Training rows that stopped at the fork, and how many of them would have been
    # answered otherwise had they been sent this way.
    would_change: Change | None = None

    @property
    def words(self) -> str:
        """What is done on it, with prices."""
        return bought_words(self.bought) or "stop"

    @property
    def price(self) -> float:
        """Price of what is bought on it."""
        return tidy(sum(purchase.price for purchase in self.bought))

    def _details(self, rerouted: bool) -> str:
        """The way in one line of text; `rerouted` as of its fork."""
        low, high = self.cost
        parts = [f"{'taken' if self.taken else 'not taken'}: {self.words}"]
        if high > self.price:
            parts.append(f"{low:.4g} to {high:.4g} in all")
        parts.append(f"margin {self.margin:+.3g}")
        if rerouted and not self.taken and self.margin >= 0:
            parts.append("too dear")
        share = self.share
        rows = "" if share is None else f"; {100 * share:.1f} % of training rows"
        return f"  {', '.join(parts)}{rows}"


@dataclass(frozen=True)
class PassedFork:
    """Nodes that know the same, where a row chose one of several ways."""

    # All nodes of the fork, those included that the row did not pass.
    nodes: tuple[int, ...]
    known: tuple[str, ...]  # sensors known there
    spent: float  # their price
    rerouted: bool  # whether the row could not afford what was decided
    answer: Any  # what would be answered with what is known here
    probabilities: Mapping[Any, float]  # by what is known here
    # All ways out, in the order of the tree's leaves; none is taken by a row that has
    # to stop at a node.
    branches: tuple[Branch, ...]
    spread: float | None = None  # how far off a number may be; None of classes

    @property
    def words(self) -> str:
        """What would be answered here, and how sure that is."""
        if self.spread is not None:
            return f"so far {number_words(self.answer, self.spread)}"
        return belief_words(self.answer, self.probabilities[self.answer])

    @property
    def taken(self) -> Branch | None:
        """The way that the row took; None if it had to stop here."""
        return next((branch for branch in self.branches if branch.taken), None)

    def to_dict(self) -> dict[str, Any]:
        """Give the fork as plain numbers, strings, lists and dicts."""
        form: dict[str, Any] = plain(asdict(self))
        if self.spread is None:
            del form["spread"]
        return form

    def _details(self) -> list[str]:
        """Lines of text about the ways out, the nearest to be taken first.

        With two ways, the lines of the node already tell of the one that was taken.
        """
        ranked = sorted(self.branches, key=lambda b: (not b.taken, -b.margin))
        shown = [b for b in ranked if not b.taken or len(ranked) > 2]
        return [branch._details(self.rerouted) for branch in shown]

    def _table(self) -> TextTable:
        """The ways out; the one that was taken is bold."""
        which = f"node{'s' if self.nodes[1:] else ''} {range_words(self.nodes)}"
        known = ", ".join(self.known) or "nothing"
        dear = "; what was decided is too dear" if self.rerouted else ""
        lines = [
            [
                f"buy {', '.join(p.sensor for p in b.bought)}" if b.bought else "stop",
                f"{b.margin:+.3g}",
                f"{b.price:.4g}",
                " to ".join(dict.fromkeys(f"{end:.4g}" for end in b.cost)),
                "–" if b.share is None else percent(b.share),
            ]
            for b in self.branches
        ]
        return TextTable(
            ("way", "margin", "price", "to a leaf", "training rows"),
            lines,
            title=f"{which}, known: {known}; spent {self.spent:.4g}{dear}",
            bold=next((i for i, b in enumerate(self.branches) if b.taken), None),
        )


@dataclass(frozen=True)
class Explanation:
    """One row's way through the tree: what was decided, why, and at what price.

    Attributes
    ----------
    start : tuple of Purchase
        What is bought before the first decision.
    nodes : tuple of Passage
        Every node that the row passed: ``node``, ``known``, ``spent``, ``score``,
        ``taken``, ``rerouted``, ``contributions``, ``influences``, ``intercept``,
        ``bought``, ``other_cost``, ``share_negative``, ``share_positive``.
    forks : tuple of PassedFork
        Every choice that the row made. Nodes that know the same are one fork: its
        ``nodes``, what is ``known`` there, what is ``spent``, the ``answer`` and the
        ``probabilities`` so far, whether the row was ``rerouted``, and its ``branches``,
        taken or not: each has ``place``, ``bought``, ``taken``, ``margin``, ``cost``,
        ``share``, ``change`` and ``would_change``.
    leaf : int
        Where the row stops; ``~node`` if it can afford no leaf.
    known : tuple of str
        Sensors known there.
    answer : class label
    probabilities : mapping of class label to float
    expected_loss : mapping of class label to float, or None
        Loss to expect of each answer, if there is a loss matrix.
    spent : float
    everything : float
        What all sensors would have cost.
    policy : Policy
    prices : ndarray of shape (1, n_sensors) or None
        Prices of the row, if it has its own.
    spread : float or None
        How far off a number is expected to be; None of classes.
    referred : bool
        Whether the row is referred to a person; `answer` is then the best guess.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 1, "dear": 5}, cost_weight=0.02)
    >>> explanation = model.fit(X, y).explain([3.0, np.nan])
    >>> explanation.answer, explanation.spent
    (True, 1.0)
    >>> node = explanation.nodes[0]
    >>> node.taken, node.other_cost
    ('negative', (5.0, 5.0))
    >>> [(branch.words, branch.taken) for branch in explanation.forks[0].branches]
    [('stop', True), ('buy dear (5)', False)]
    """

    start: tuple[Purchase, ...]
    nodes: tuple[Passage, ...]
    forks: tuple[PassedFork, ...]
    leaf: int
    known: tuple[str, ...]
    answer: Any
    probabilities: Mapping[Any, float]
    expected_loss: Mapping[Any, float] | None
    spent: float
    everything: float
    policy: Policy = field(repr=False, compare=False)
    prices: Array | None = field(default=None, repr=False, compare=False)
    spread: float | None = None
    referred: bool = False

    @property
    def place(self) -> str:
        """Where the row stops, in words: a leaf, a node, or the start."""
        return self.policy.place_name(self.leaf)

    @property
    def rerouted_at(self) -> int | None:
        """Node where the row could not afford what was decided; None if nowhere."""
        return next((p.node for p in self.nodes if p.rerouted), None)

    def to_dict(self) -> dict[str, Any]:
        """Give the explanation as plain numbers, strings, lists and dicts."""
        form: dict[str, Any] = plain(
            {
                "start": [asdict(purchase) for purchase in self.start],
                "nodes": [asdict(passage) for passage in self.nodes],
                "forks": [fork.to_dict() for fork in self.forks],
                "leaf": self.leaf,
                "known": self.known,
                "answer": self.answer,
                "referred": self.referred,
                "probabilities": self.probabilities,
                "expected_loss": self.expected_loss,
                "spent": self.spent,
                "everything": self.everything,
                "rerouted_at": self.rerouted_at,
                **({} if self.spread is None else {"spread": self.spread}),
            }
        )
        return form

    @property
    def summary(self) -> str:
        """The answer, how likely it is, and what was spent, in one line."""
        money = self.policy.about.money
        if self.spread is not None:
            answer = number_words(self.answer, self.spread)
        else:
            likely = f"probability {chance_words(self.probabilities[self.answer])}"
            answer = f"{class_words(self.answer)} ({likely}{self._losses()})"
        person = "hand over to a person; best guess: " if self.referred else ""
        return (
            f"{person}{answer}; spent {money(self.spent)}, everything would cost "
            f"{money(self.everything)}"
        )

    def _losses(self) -> str:
        """The losses to expect of this answer, and of the likeliest other one."""
        if self.expected_loss is None:
            return ""
        others = {k: p for k, p in self.probabilities.items() if k != self.answer}
        other = max(others, key=lambda label: others[label])
        return (
            f"; expected loss {self.expected_loss[self.answer]:.4g}, of "
            f"{class_words(other)} {self.expected_loss[other]:.4g}"
        )

    @property
    def steps(self) -> list[list[str]]:
        """What was done, step by step, in plain words: lines, the first of each a head."""
        first = f"buys {self._listed(self.start)}" if self.start else "buys nothing"
        everybody = self.leaf != ~self.policy.tree.n_nodes
        why = "as everybody does" if everybody else "since it can afford no more"
        steps = [[f"{first}, {why}"]]
        for fork in self.forks:
            known = ", ".join(fork.known) or "nothing"
            reasons = [] if fork.rerouted else self._why(fork)
            steps.append([f"knows {known}: {fork.words}", self._action(fork), *reasons])
        if self.forks and set(self.known) != set(self.forks[-1].known):
            steps.append([f"knows {', '.join(self.known)}: the way ends here"])
        return steps

    def __str__(self) -> str:
        lines = [self.summary]
        for number, (head, *rest) in enumerate(self.steps, 1):
            lines += [f"{number}. {head}", *(f"   {line}" for line in rest)]
        return "\n".join(lines)

    @property
    def details(self) -> str:
        """The same for experts: scores, contributions and margins."""
        if self.spread is not None:
            likely = f"spread {self.spread:.3g}"
        else:
            likely = f"probability {self.probabilities[self.answer]:.3g}"
        if self.expected_loss is not None:
            likely += f", expected loss {self.expected_loss[self.answer]:.4g}"
        lines = [
            f"{self.answer!r} at {self.place} ({likely}); "
            f"spent {self.spent:.4g} of {self.everything:.4g}",
            f"start: {bought_words(self.start) or 'nothing is known'}",
        ]
        for fork in self.forks:
            for passage in self.nodes:
                if passage.node in fork.nodes:
                    lines += passage._details(passage is self.nodes[-1])
            lines += fork._details()
        return "\n".join(lines)

    def _listed(self, bought: Sequence[Purchase]) -> str:
        money = self.policy.about.money
        return ", ".join(f"{p.sensor} ({money(p.price)})" for p in bought)

    def _why(self, fork: PassedFork) -> list[str]:
        """Reasons for the way that was taken, against the next best way, and stopping."""
        ways = fork_at(self.policy.tree, fork.nodes[0]).ways
        taken = next(i for i, branch in enumerate(fork.branches) if branch.taken)
        others = [i for i in range(len(ways)) if i != taken]
        others.sort(key=lambda i: -fork.branches[i].margin)
        stops = [i for i in others[1:] if not fork.branches[i].bought]
        lines = []
        for other in [*others[:1], *stops[:1]]:
            signs = dict(ways[other].signs)
            node, sign = next(
                (j, sign) for j, sign in ways[taken].signs if signs.get(j, sign) != sign
            )
            passage = next(p for p in self.nodes if p.node == node)
            words = influence_words(passage.influences, sign)
            rather = f" rather than {fork.branches[other].words}" if ways[2:] else ""
            lines.append(f"for it{rather}: {words}")
        return lines

    def _action(self, fork: PassedFork) -> str:
        """What was done at a fork, and what it changes."""
        taken, money = fork.taken, self.policy.about.money
        if fork.rerouted:
            decided = max(fork.branches, key=lambda branch: branch.margin)
            limit = 0.0 if self.policy.max_cost is None else self.policy.max_cost
            instead = "stops"
            if taken is not None and taken.bought:
                instead = f"buys {self._listed(taken.bought)}"
            return (
                f"would buy {self._listed(decided.bought)}, which is beyond max_cost "
                f"({money(limit)}); {instead} instead"
            )
        assert taken is not None
        if taken.bought:
            buys, number = f"buys {self._listed(taken.bought)}", len(taken.bought)
            if taken.change is None:
                return buys
            subject, follows = (
                "it" if number == 1 else "they",
                taken.place < 0,
            )  # a node
            return f"{buys}: {purchase_words(subject, number, taken.change, follows)}"
        if self.policy.places[taken.place].refers:
            return "hands over to a person"
        others = [branch for branch in fork.branches if branch.bought]
        if not others:
            return "stops here"
        useful = max(others, key=_changed)  # the first of equals
        names = [purchase.sensor for purchase in useful.bought]
        cost = cost_words(*useful.cost, self.policy.about)
        return stop_words(names, useful.would_change, cost, useful.place < 0)

    def to_html(self, title: str = "Why this way") -> str:
        """Give the explanation as an HTML page of its own, with the way drawn.

        Parameters
        ----------
        title : str, default="Why this way"

        Returns
        -------
        html : str
            It loads nothing from elsewhere.
        """
        return page(self._repr_html_(), title, NOTE)

    def _repr_html_(self) -> str:
        steps = "".join(
            f"<li>{'<br>'.join(escaped(line) for line in step)}</li>"
            for step in self.steps
        )
        return "\n".join(
            [
                f"<p><b>{escaped(self.summary)}</b></p>",
                f"<ol>{steps}</ol>",
                boxed(PathDisplay.from_explanation(self).to_svg()),
                "<details><summary>Scores and margins</summary>",
                *(fork._table().to_html() for fork in self.forks),
                boxed(f"<pre>{escaped(self.details)}</pre>"),
                "</details>",
            ]
        )

    def plot(self, ax: Any = None) -> PathDisplay:
        """Draw the tree with the row's way.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; by default a new figure.
        """
        return PathDisplay.from_explanation(self).plot(ax)


# how it came to that ----------------------------------------------------------------------


def explain(policy: Policy, table: Table) -> Explanation:
    """Follow the one row of a table through a policy.

    Nothing but the sensors that the row acquires is read.
    """
    trail: list[Crossing] = []
    walk = send(policy, table, trail=trail)
    place = policy.places[int(walk.place[0])]
    bill = path_bill(place.path, policy.sensors, walk.prices)
    first = place.path[0] if place.path else frozenset()
    sensors, likely = policy.sensors, walk.posterior()
    matrix = policy.loss.matrix if policy.loss.score is None else None
    expected = None
    if matrix is not None:
        losses = (likely @ matrix)[0].tolist()
        expected = dict(zip(policy.labels, losses, strict=True))
    answer, probabilities, spread = _answer(policy, likely)
    forks: list[tuple[Fork, list[Crossing]]] = []
    for crossing in trail:
        if not forks or crossing.node not in forks[-1][0].nodes:
            forks.append((fork_at(policy.tree, crossing.node), []))
        forks[-1][1].append(crossing)
    return Explanation(
        start=_purchases(bill, first),
        nodes=tuple(_passage(walk, crossing, bill) for crossing in trail),
        forks=tuple(_passed(walk, fork, crossings) for fork, crossings in forks),
        leaf=place.number,
        known=place.names,
        answer=answer,
        probabilities=probabilities,
        expected_loss=expected,
        spent=float(walk.cost()[0]),
        everything=float(np.sum(sensors.cost_of(sensors.names, prices=walk.prices))),
        policy=policy,
        prices=walk.prices,
        spread=spread,
        referred=policy.hands_over_one(place.number, likely),
    )


def _answer(
    policy: Policy, likely: Array
) -> tuple[Any, dict[Any, float], float | None]:
    """Answer, probabilities by class, and spread, from the output of a leaf or node."""
    answer, names = policy.answers(likely).tolist()[0], policy.labels
    if not names:
        return answer, {}, float(likely[0, 1])
    return answer, dict(zip(names, likely[0].tolist(), strict=True)), None


def _passage(walk: Walk, crossing: Crossing, bill: Mapping[str, Any]) -> Passage:
    """What one row decided at a node, and why."""
    policy, tree, costs = walk.policy, walk.policy.tree, walk.costs[0]
    node, score = crossing.node, float(crossing.score[0])
    upward, rerouted = score > 0, not crossing.goes_on[0]
    here = policy.places[~node]
    end = int(walk.place[0]) if rerouted else here.positive if upward else here.negative
    spent = float(costs[~node])
    others = tree.path_signs[:, node] == (-1 if upward else 1)
    beyond = costs[: tree.n_leaves][others] - spent
    negative, positive = shares_of(policy, node)
    columns = crossing.evidence.columns(here)
    reads = dict(zip(policy.sensors.names, policy.sensors.columns, strict=True))
    values = {n: [walk.table.value(0, c) for c in reads[n]] for n in here.names}
    return Passage(
        node,
        here.names,
        spent,
        score,
        "positive" if upward else "negative",
        rerouted,
        contributions_to(policy, node, columns),
        influences_on(policy, node, columns, values),
        float(policy.decisions[node].coef[-1]),
        _purchases(bill, policy.places[end].sensors - here.sensors),
        (tidy(beyond.min()), tidy(beyond.max())),
        negative,
        positive,
    )


def _passed(walk: Walk, fork: Fork, crossings: Sequence[Crossing]) -> PassedFork:
    """What one row decided at a fork.

    Its nodes know the same, so the scores of those that it did not pass cost nothing.
    """
    policy, evidence = walk.policy, crossings[0].evidence
    here = policy.places[~fork.nodes[0]]
    scores = {
        node: float(evidence.score(policy.places[~node])[0]) for node in fork.nodes
    }
    scores.update({c.node: float(c.score[0]) for c in crossings})
    answer, probabilities, spread = _answer(policy, evidence.posterior(here))
    return PassedFork(
        fork.nodes,
        here.names,
        float(walk.costs[0, here.number]),
        not all(c.goes_on[0] for c in crossings),
        answer,
        probabilities,
        tuple(_branch(walk, fork, way, scores) for way in fork.ways),
        spread,
    )


def _branch(walk: Walk, fork: Fork, way: Way, scores: Mapping[int, float]) -> Branch:
    """One way out of a fork, for the row of a walk."""
    policy, costs, end = walk.policy, walk.costs[0], int(walk.place[0])
    here, there = policy.places[~fork.nodes[0]], policy.places[~way.end]
    leaves = list(leaves_behind(policy.tree, way.end))
    taken = end in leaves
    if end < 0:  # it had to stop at a node
        beyond_fork = ~end not in fork.nodes
        taken = beyond_fork and policy.places[end].leaves_below[0] in leaves
    beyond = costs[leaves] - costs[here.number]
    came = float(policy.flow.leaf_rows[list(here.leaves_below)].sum())
    rows = float(policy.flow.leaf_rows[leaves].sum())
    bill = path_bill(there.path, policy.sensors, walk.prices)
    return Branch(
        there.number,
        _purchases(bill, there.sensors - here.sensors),
        taken,
        min(sign * scores[node] for node, sign in way.signs) + 0.0,  # -0.0 is 0.0
        (tidy(beyond.min()), tidy(beyond.max())),
        rows / came if came else None,
        changes_of(policy, way),
        would_change(policy, way),
    )


def _purchases(bill: Mapping[str, Any], bought: frozenset[str]) -> tuple[Purchase, ...]:
    """Some sensors of a bill with their prices, in order of purchase."""
    return tuple(
        Purchase(name, float(np.sum(price)))
        for name, price in bill.items()
        if name in bought
    )


def bought_words(bought: Sequence[Purchase]) -> str:
    """Purchases with their prices, in words; "" if there are none."""
    listed = ", ".join(f"{p.sensor} ({p.price:.4g})" for p in bought)
    return f"buy {listed}" if listed else ""


def tidy(price: float) -> float:
    """A difference of prices without rounding errors."""
    return round(float(price), 9)


def _changed(branch: Branch) -> float:
    return 0.0 if branch.would_change is None else branch.would_change.changed
