"""One comparison: every recipe, one set for all, and nothing, on the same held-out rows.

Where rows are few, a tree that was found on all of them has seen those that it is judged
on; it is found again without each fold. A recipe is then judged as a way of making trees,
and the tree of all rows is delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sensortree.constants import (
    CLEARLY,
    GLANCED_FOLDS,
    OWN_TREES_COLUMNS,
    OWN_TREES_ROWS,
)
from sensortree.learning.held_out import (
    HeldOutDecisions,
    Outcome,
    Outcomes,
    answers_to_all,
    comparison_of,
    decide_held_out,
    held_out_parts,
    nothing_bought,
    optimism_of,
    outcome_of,
    tells_more,
)
from sensortree.learning.joint import Learner
from sensortree.learning.pose import costs_of_leaves, posable
from sensortree.learning.prepare import Prepared, lead_of_kind
from sensortree.learning.recipes import (
    Recipe,
    TreeFinder,
    build_structure,
    given_structure,
    own_chain,
    structures_of,
)
from sensortree.learning.settings import Settings, named_root
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.policy.about import NOTHING, ONE_SET, Comparison
from sensortree.structure.search import StructureReport, report_of_built
from sensortree.structure.search import most_steps as most_search_steps
from sensortree.structure.trees import prune, without_sensors
from sensortree.tree.paths import check_tree_is_allowed
from sensortree.tree.tree import Leaf, SensorTree
from sensortree.types import Rows

Known = frozenset[str]


@dataclass(frozen=True, eq=False)
class Chosen:
    """The tree and the kind of its leaves, and how they were compared."""

    tree: SensorTree
    report: StructureReport
    leaves: LeafClassifiers | None = None  # None for those prepared
    comparison: Comparison | None = None  # None where nothing was compared


def choose_recipe(
    prepared: Prepared, settings: Settings, learn: Learner, *, simpler: bool = False
) -> Chosen:
    """Give the tree that `structure` stands for, with the leaves that suit it.

    `learn` learns decisions that are only compared. `simpler` says whether one set for
    all, and nothing, are compared too.
    """
    race = Race(prepared, settings, learn, simpler)
    market = race.finder.market
    if settings.learns_structure:
        named = named_root(settings, market)
        worth_most = prepared.leaves.data.largest_loss
        if named is None and settings.cost_weight * market.least_price() >= worth_most:
            tree = SensorTree(Leaf(market.free()))
            report = report_of_built(str(settings.structure), tree, market.sensors)
            why = "no sensor can be worth its price"
            return Chosen(tree, replace(report, stopped=why))
        return race.led_by_likeliest().chosen()
    if isinstance(settings.structure, (str, list, tuple)):
        tree = build_structure(settings, market)
    else:
        tree = given_structure(settings, market.sensors)
        check_tree_is_allowed(tree, market)
    (name,) = race.structures
    report = report_of_built(name, tree, market.sensors)
    race.finder.found[name] = tree, report
    return race.chosen()


@dataclass(eq=False)
class Race:
    """Recipes that are judged one after another, the promising ones first."""

    prepared: Prepared
    settings: Settings
    learn: Learner
    simpler: bool
    outcomes: Outcomes = field(default_factory=Outcomes)  # of all that was judged
    # Where held-out rows ended by each recipe.
    ways: dict[str, list[HeldOutDecisions]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)  # what was not judged: why
    # Leads of kinds of leaves over others with some sensors, each found once.
    leads: dict[tuple[str, str, Known], float] = field(default_factory=dict)

    @cached_property
    def finder(self) -> TreeFinder:
        """The trees of all rows."""
        return TreeFinder(self.prepared, self.settings, self.learn)

    @cached_property
    def folds(self) -> list[tuple[Rows, Rows]]:
        """Distinct rows to learn from and to judge on, for each fold."""
        return list(held_out_parts(self.prepared.leaves))

    @cached_property
    def finders(self) -> list[TreeFinder] | None:
        """What finds trees without each fold; None where rows are many, or trees given."""
        data = self.prepared.leaves.data
        if not self.settings.learns_structure or self.prepared.winners is not None:
            return None
        width = sum(block.shape[1] for block in data.blocks)
        if len(data.y) > OWN_TREES_ROWS or width > OWN_TREES_COLUMNS:
            return None
        first, _ = data.distinct()
        fold = [int(data.fold[first][test[0]]) for _, test in self.folds]
        parts = [self.prepared.without(f) for f in fold]
        return [TreeFinder(part, self.settings, self.learn) for part in parts]

    @property
    def stopped(self) -> bool:
        """Whether time has run out."""
        return bool(self.prepared.progress.stopped)

    def chosen(self) -> Chosen:
        """Judge what is promising, take the best, and leave out what it does not need.

        A tree that was not learned is kept, whatever one set for all is worth.
        """
        structures = self.structures
        n_recipes = len(structures) * max(1, len(self.prepared.kinds))
        if not self.folds or (n_recipes == 1 and not self.simpler):
            return Chosen(*self.finder.find(structures[0]))
        with self.prepared.progress.watch.stage("comparing candidates"):
            self._judge_all(structures)
            if self.simpler:
                self._judge_simple()
            choice = self._best_recipe()
            if self.simpler and self.settings.learns_structure:
                choice = self.outcomes.choice()
            if self.prepared.winners is not None:
                self.prepared.winners.add(self.settings.cost_weight, choice)
            return self._delivered(choice)

    @cached_property
    def structures(self) -> list[str]:
        """Those that are compared."""
        structure = self.settings.structure
        if structure == "auto":
            return list(structures_of(self.prepared, self.settings))
        if isinstance(structure, (list, tuple)):  # an order of the user's own
            return ["cascade"]
        return [structure if isinstance(structure, str) else "given"]

    # judging ----------------------------------------------------------------------------

    def _judge_all(self, structures: list[str]) -> None:
        """Every structure with the usual leaves, and the best with other kinds."""
        for recipe in self._expected(structures):
            self._judge(recipe)
        if self.outcomes.of:
            return
        usual, *others = self.prepared.kinds or ("",)
        for structure in self._promising(structures):
            beaten = structure == "planned" and bool(self.outcomes.of)
            if beaten and not self._plan_promises():
                continue
            self._judge(Recipe(structure, usual))
        for kind in others:
            best = Recipe.named(self.outcomes.best())
            rivals = [best.structure]
            if "planned" in structures and self._plan_promises():
                rivals.append("planned")
            for structure in dict.fromkeys(rivals):
                if not self.stopped and self._worth_trying(kind, structure, best.leaf):
                    self._judge(Recipe(structure, kind))
                    if "boosted" in (kind, usual) and self.settings.structure == "auto":
                        self._judge(Recipe(own_chain(kind), kind))
            self._judge_others(kind, best)
        self.dropped |= self.prepared.not_compared

    def _expected(self, structures: list[str]) -> list[Recipe]:
        """What won at cost weights beside this one, if that is known."""
        winners = self.prepared.winners
        names = winners.expected(self.settings.cost_weight) if winners else frozenset()
        recipes = [Recipe.named(n) for n in sorted(names - {NOTHING, ONE_SET})]
        known = {*structures, "chain", "backward"}
        return recipes if all(r.structure in known for r in recipes) else []

    def _judge_others(self, kind: str, best: Recipe) -> None:
        """Give a kind of leaf that is better to the other trees that are nearly as good."""
        winner = Recipe.named(self.outcomes.best())
        if winner.leaf != kind or winner == best:
            return
        for name in list(self.outcomes.of):
            other = Recipe.named(name)
            behind = self.outcomes.behind(name, str(best))
            if other.leaf == best.leaf and behind <= CLEARLY:
                self._judge(Recipe(other.structure, kind))

    def led_by_likeliest(self) -> Race:
        """The race of the kind of leaf that is likeliest with the sensors of a tree."""
        usual, *others = self.prepared.kinds or ("",)
        if not others or not self.folds or not self.settings.learns_structure:
            return self
        first = usual
        quick = replace(self, prepared=self.prepared.by_screens())
        for structure in quick.structures:
            known = quick.finder.find(structure)[0].sensors
            if known:
                with self.prepared.progress.watch.stage("leaf choice"):
                    for kind in others:
                        least = CLEARLY if kind == "boosted" else 0.0
                        if self._lead(kind, first, known) > least:
                            first = kind
                break
        if first == usual:
            return self
        prepared = self.prepared.led_by(first)
        return Race(prepared, self.settings, self.learn, self.simpler, leads=self.leads)

    def _lead(self, kind: str, other: str, known: Known) -> float:
        """Standard errors by which a kind of leaf leads another, by its log-loss."""
        if (kind, other, known) not in self.leads:
            one, two = map(self.prepared.leaves_of, (kind, other))
            self.leads[kind, other, known] = lead_of_kind(one, two, known)
        return self.leads[kind, other, known]

    def _worth_trying(self, kind: str, structure: str, usual: str) -> bool:
        """Whether a kind of leaf may be better, by its log-loss with a tree's sensors."""
        known = self.finder.find(structure)[0].sensors
        if not known:
            return False
        lead = self._lead(kind, usual, known)
        least = CLEARLY if kind == "boosted" else -CLEARLY  # boosted ones take longest
        if lead <= least:
            self.dropped[kind] = (
                f"by held-out log-loss {abs(lead):.1f} standard errors "
                f"{'better' if lead > 0 else 'worse'} than {usual} leaves; tried if "
                f"{'more than' if least > 0 else 'less than'} {CLEARLY:g} "
                f"{'better' if least > 0 else 'worse'}"
            )
        return lead > least

    def _promising(self, structures: list[str]) -> list[str]:
        """Structures that are judged with their own leaves.

        All of them; but boosted leaves of many rows take long: the first, and those that
        the booster of the search puts before it.
        """
        subsets = self.prepared.search.subsets
        if not subsets.masked or len(structures) == 1 or self.finders is not None:
            return structures
        seen = Outcomes()
        for name in structures:
            if seen.of and self.stopped:
                break
            tree = posable(self.finder.find(name)[0], self.prepared.leaves)
            seen.of[name] = self.finder.glanced(tree)
        first = structures[0]
        lead = {name: seen.lead(name, first)[0] for name in seen.of}
        out = [name for name in seen.of if name != first and lead[name] <= 0]
        self.dropped |= dict.fromkeys(out, f"a quick screen sees no gain over {first}")
        return [name for name in seen.of if name not in out]

    def _plan_promises(self) -> bool:
        """Whether a plan, by its own cells, has no higher risk than the best of others."""
        steps = self.finder.find("planned")[1].steps
        least = self.outcomes.of[self.outcomes.best()].risk.mean()
        promises = bool(steps) and steps[-1]["loss"] <= least
        if not promises:
            self.dropped["planned"] = "by its own estimate no better than the others"
        return promises

    def _judge(self, recipe: Recipe) -> None:
        """Judge a recipe, unless time is over and there is another."""
        if str(recipe) in self.outcomes.of:
            return
        if self.outcomes.of and self.stopped:
            self.dropped[str(recipe)] = str(self.prepared.progress.stopped)
            return
        leaves = self.prepared.leaves_of(recipe.leaf)
        trees = [posable(t, leaves) for t in self._trees(recipe.structure)]
        outcome, self.ways[str(recipe)] = self._decided(trees, leaves)
        self.outcomes.of[str(recipe)] = outcome
        self.dropped.pop(recipe.structure, None)
        self.prepared.progress.step("comparing", str(recipe))

    def _trees(self, structure: str) -> list[SensorTree]:
        """The tree that each fold is judged on: its own, while there is time."""
        if self.settings.max_time is not None:
            self.finder.find(structure)
        if self.finders is None or self.stopped:
            return [self.finder.find(structure)[0]] * len(self.folds)
        found = []
        for finder in self.finders:
            if structure == "exhaustive":
                # it begins with what is best in all rows, or with what is free
                finder.found[structure] = self.finder.find(structure)
            found.append(finder.find(structure)[0])
        return found

    def _decided(
        self, trees: SensorTree | Sequence[SensorTree], leaves: LeafClassifiers
    ) -> tuple[Outcome, list[HeldOutDecisions]]:
        """What decisions on one tree, or one for each fold, are worth; where they lead."""
        seen = decide_held_out(trees, leaves, self.settings, self.learn)
        return outcome_of(seen, leaves, self.settings), seen

    def _judge_simple(self) -> None:
        """Judge one set for all, and nothing, with the leaves of the best recipe."""
        leaves = self.prepared.leaves_of(Recipe.named(self.outcomes.best()).leaf)
        nothing = nothing_bought(leaves, self.settings)
        if self.settings.learns_structure:
            tree = posable(SensorTree(Leaf(nothing)), leaves)
            self.outcomes.of[NOTHING] = self._decided(tree, leaves)[0]
        sets = [
            self._best_set(leaves, train, self._found_without(fold))
            for fold, (train, _) in enumerate(self.folds)
        ]
        if any(s != nothing for s in sets) or not self.settings.learns_structure:
            trees = [posable(SensorTree(Leaf(s)), leaves) for s in sets]
            self.outcomes.of[ONE_SET] = self._decided(trees, leaves)[0]

    def _found_without(self, fold: int) -> set[Known] | None:
        """Sets that trees found without a fold stop with; None if there are none such.

        A search that has seen the fold would have picked sets that look good there.
        """
        if self.finders is None:
            return None
        trees = [tree for tree, _ in self.finders[fold].found.values()]
        return {leaf.sensors for tree in trees for leaf in tree.leaves}

    def _best_set(
        self,
        leaves: LeafClassifiers,
        rows: Rows | None = None,
        among: set[Known] | None = None,
    ) -> Known:
        """The set for all of the least risk on some distinct rows, of those judged.

        Of a tree that was given, of its leaves; or of those `among` which it is looked for.
        """
        market = self.finder.market
        first, weight = leaves.data.distinct()
        at = np.arange(len(first)) if rows is None else rows
        share = weight[at] / weight[at].sum()
        judged: list[Known] = [
            s
            for s in leaves.posteriors
            if (among is None or s in among)
            and market.allows(s)
            and np.all(market.affordable(market.cost(s)))
        ]
        if not self.settings.learns_structure:
            tree = self.finder.find(self.structures[0])[0]
            judged = list(dict.fromkeys(leaf.sensors for leaf in tree.leaves))
            leaves.judge(judged)
        free = market.free()
        judged = [s for s in judged if s >= free] or [free]

        def risk(subset: Known) -> tuple[float, float]:
            paid = costs_of_leaves(SensorTree(Leaf(subset)), leaves)[at, 0]
            cost = float(share @ paid)
            loss = float(share @ leaves.lost(subset)[first][at])
            return round(loss + self.settings.cost_weight * cost, 12), cost

        return min(judged, key=risk)

    # delivering -------------------------------------------------------------------------

    def _delivered(self, choice: str) -> Chosen:
        """The model of a choice: its tree of all rows, less what that does not need."""
        leaves = self.prepared.leaves_of(Recipe.named(self._best_recipe()).leaf)
        removed: tuple[str, ...] = ()
        outcome = self.outcomes.of[choice]
        if choice in (NOTHING, ONE_SET):
            nothing = nothing_bought(leaves, self.settings)
            known = nothing if choice == NOTHING else self._best_set(leaves)
            tree = SensorTree(Leaf(known))
            report = self._report_of_set(choice, tree)
        else:
            recipe = Recipe.named(choice)
            leaves = self.prepared.leaves_of(recipe.leaf)
            tree, report = self.finder.find(recipe.structure)
            if self.settings.learns_structure and not self.stopped:
                tree, ways, own, removed = self._needed(tree, leaves, choice)
                whole, tree = tree.n_leaves, self._reached(tree, ways)
                report = replace(report, pruned=whole - tree.n_leaves)
                outcome = own if self.finders is None else self._paying(outcome, own)
        optimism = self.outcomes.optimism
        if choice == NOTHING:  # it was not chosen for looking good; its answer was
            optimism = optimism_of(answers_to_all(leaves))
        given = self.outcomes, choice, optimism, outcome, removed, self.dropped
        compared = replace(comparison_of(*given), informative=self._tells())
        return Chosen(tree, report, leaves, compared)

    def _report_of_set(self, choice: str, tree: SensorTree) -> StructureReport:
        """How one set for all, or nothing, came about: trees were searched for, too."""
        search = self.prepared.search
        return replace(
            report_of_built(choice, tree, self.prepared.leaves.data.sensors),
            stopped=search.progress.stopped or "no tree was better",
            n_classifiers=len(search.subsets.leaves.posteriors),
            n_screened=search.subsets.n_screened,
            n_rows=len(search.rows),
        )

    def _best_recipe(self) -> str:
        recipes = [n for n in self.outcomes.of if n not in (NOTHING, ONE_SET)]
        return self.outcomes.best(recipes)

    def _tells(self) -> bool:
        """Whether what the best tree buys says more of the target than what is free."""
        best = Recipe.named(self._best_recipe())
        leaves = self.prepared.leaves_of(best.leaf)
        known = nothing_bought(leaves, self.settings)
        tree, _ = self.finder.find(best.structure)
        bought = {leaf.sensors for leaf in tree.leaves} - {known}
        leaves.judge([known, *bought])
        return not bought or any(tells_more(s, known, leaves) for s in bought)

    def _paying(self, outcome: Outcome, own: Outcome) -> Outcome:
        """The risk of trees that were found without each fold, at the cost of one tree."""
        more = self.settings.cost_weight * float(outcome.cost.mean() - own.cost.mean())
        return Outcome(outcome.risk, outcome.loss + more, outcome.error, own.cost)

    def _needed(
        self, tree: SensorTree, leaves: LeafClassifiers, choice: str
    ) -> tuple[SensorTree, list[HeldOutDecisions], Outcome, tuple[str, ...]]:
        """Remove sensors without which the tree is clearly better, the dearest first."""
        market, removed = self.finder.market, []
        known = (
            tree.root.sensors if named_root(self.settings, market) else market.free()
        )
        own, ways = self.outcomes.of[choice], self.ways[choice]
        if self.finders is not None:  # the recipe was judged by trees of its folds
            own, ways = self._decided(posable(tree, leaves), leaves)
        slow = self.prepared.search.subsets.masked and self.finders is None
        if self.prepared.winners is not None or slow:
            return tree, ways, own, ()
        stops = {
            at for _, _, stop in ways for at in np.unique(stop) if at < tree.n_leaves
        }
        bought = frozenset().union(*(tree.leaves[at].sensors for at in stops)) - known
        for sensor in sorted(
            bought, key=lambda s: (-market.mean_cost(frozenset((s,))), s)
        ):
            less = without_sensors(tree, frozenset((sensor,)))
            left = {v.sensors for v in less.leaves} | {v.sensors for v in less.nodes}
            allowed = all(map(market.allows, left)) and not self.stopped
            if not (allowed and self._may_go(sensor, ways)):
                continue
            without: list[HeldOutDecisions] = []
            for folds in (slice(GLANCED_FOLDS), slice(GLANCED_FOLDS, None)):
                without += decide_held_out(
                    posable(less, leaves), leaves, self.settings, self.learn, folds
                )
                some = {"with": ways[: len(without)], "without": without}
                saved = Outcomes(
                    {k: outcome_of(w, leaves, self.settings) for k, w in some.items()}
                )
                behind = saved.behind("with", "without")
                if behind <= 0.0:  # what saves nothing there does not save clearly
                    break
            if behind >= CLEARLY and len(without) == len(ways):
                tree, own, ways = less, saved.of["without"], without
                removed.append(sensor)
        return tree, ways, own, tuple(removed)

    def _reached(self, tree: SensorTree, ways: list[HeldOutDecisions]) -> SensorTree:
        """The tree without leaves that no held-out row reaches, if decisions are left.

        It makes the same decisions there, by a smaller linear program.
        """
        if self.prepared.leaves.data.may_refer:
            return tree
        visits = np.zeros(tree.n_leaves + 2, dtype=np.intp)  # two for who cannot pay
        for _, _, stop in ways:
            visits[: stop.max() + 1] += np.bincount(stop)
        left, nodes = prune(tree, visits[: tree.n_leaves])
        return left if len(nodes) else tree

    def _may_go(self, sensor: str, ways: list[HeldOutDecisions]) -> bool:
        """Whether the tree is clearly better without a sensor, as a screen sees it."""
        search, weight = self.prepared.search, self.settings.cost_weight
        data = self.prepared.leaves.data
        rows, _ = data.distinct()
        seen = np.full(len(data.y), -1)
        seen[search.rows] = np.arange(len(search.rows))
        gains, judged = [], []
        for tree, test, leaf in ways:
            gain = np.zeros(len(test))
            for number, stop in enumerate(tree.leaves):
                less = stop.sensors - {sensor}
                if less == stop.sensors:
                    continue
                if not self.finder.market.allows(less):
                    return True
                here = np.flatnonzero((leaf == number) & (seen[rows[test]] >= 0))
                at = seen[rows[test[here]]]
                gain[here] = search.subsets.screened_risk(less, weight)[at]
                gain[here] -= search.subsets.screened_risk(stop.sensors, weight)[at]
            gains.append(gain[seen[rows[test]] >= 0])
            judged.append(test[seen[rows[test]] >= 0])
        observed = data.observations().take(np.concatenate(judged))
        gain = observed.each(np.concatenate(gains))
        return bool(gain.mean() <= -CLEARLY * gain.std() / np.sqrt(len(gain)))


def most_steps(settings: Settings, n_sensors: int) -> int:
    """Steps that choosing a tree may tell of."""
    if not settings.learns_structure:
        return 3
    auto = settings.structure == "auto"
    every = ("planned", "chain", "branched", "backward")
    searches = every if auto else (str(settings.structure),)
    own = sum(most_search_steps(s, n_sensors, settings.n_leaves) for s in searches)
    return 6 * own + 3 * (len(every) + 2)
