"""`SensorTreeClassifier` and others whose decisions one linear program learns together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import Any, ClassVar, Self

from sensortree.estimators.base import (
    BaseSensorTree,
    BaseSensorTreeClassifier,
    BaseSensorTreeRegressor,
)
from sensortree.estimators.parameters import (
    LeavesOfClasses,
    Program,
    TreeSearch,
    parameters,
)
from sensortree.learning.calibrating import CalibrationReport
from sensortree.learning.choose import choose_recipe
from sensortree.learning.fit import FitReport, Fitted, fit_policy
from sensortree.learning.joint import DecisionReport, Jointly
from sensortree.learning.prepare import Prepared
from sensortree.policy.about import Comparison, OutageReport
from sensortree.program import Certificate
from sensortree.threads import threads_asked


class LearnsJointly(BaseSensorTree):
    """Estimators whose decisions are learned together, refined, and certified."""

    certificate_: Certificate
    comparison_: Comparison | None
    decision_report_: DecisionReport
    calibration_report_: CalibrationReport | None
    fit_report_: FitReport
    outage_report_: OutageReport | None
    fallback_leaf_: int | None
    training_cost_: float

    _features: ClassVar[str]
    n_jobs: int | None

    def _asked(self) -> dict[str, Any]:
        features = self._program.decision_features
        automatic = isinstance(features, str) and features == "auto"
        return {
            **super()._asked(),
            "errors": self._program.errors,
            "decision_features": self._features if automatic else features,
        }

    def _learn(self, prepared: Prepared) -> Fitted:
        jointly = self._jointly()
        # what is only measured is not certified
        learn = jointly.learn if prepared.winners is None else jointly.measure
        choose = partial(choose_recipe, simpler=jointly.fallback)
        settings = self._settings_for(prepared)
        return fit_policy(prepared, settings, learn, choose, jointly.compare)

    def _jointly(self) -> Jointly:
        """How decisions are learned: what the program asks for."""
        names = [field.name for field in fields(Jointly) if field.name != "n_jobs"]
        own = {name: getattr(self._program, name) for name in names}
        return Jointly(**own, n_jobs=threads_asked(self.n_jobs))


@parameters
class JointTree(TreeSearch):
    """What is asked of a tree whose decisions are learned together."""

    program: Program | None = None
    outages: bool | str = "auto"


@parameters
class JointTreeOfClasses(JointTree, LeavesOfClasses):
    """The same of classes."""

    refer_cost: Any = None
    classifier: Any = "auto"
    cv: Any = 5
    calibrate_leaves: bool = True


@parameters
class SensorTreeClassifier(JointTreeOfClasses, LearnsJointly, BaseSensorTreeClassifier):
    """Classify with the sensors that are worth their price, example by example.

    The method of Wang, Trapeznikov and Saligrama, *Sensor Selection by Linear
    Programming*: the leaves of a tree classify with the sensors bought on the way there,
    and the decision functions of all nodes are learned together by one linear program
    whose global optimum is certified.

    Parameters
    ----------
    sensors : dict of str to `Sensor` or columns, default=None
        Which columns are bought together. None makes each column a sensor of cost 1.
        Ties go to the sensor that is declared first; another order is another way to
        break them.
    costs : dict of str to float, default=None
        Prices of sensors that `sensors` declares by their columns alone.
    cost_weight : "auto" or float, default="auto"
        Error that one unit of cost is worth (α in the paper), or, where mistakes are
        priced, money. Larger buys less. "auto" is 1 with a `loss`, which is then in the
        unit of the prices, and 0.01 without.
    risk : {"error", "brier", "log_loss"} or callable, default="error"
        What leaves lose, and so what is minimised beside the cost.

        - "error": 1 for a wrong answer, or what `loss` or `class_weight` says. Use this
          when you act on answers.
        - "brier": half the squared distance of the probabilities from the truth: 0 if
          sure and right, 1 if sure and wrong.
        - "log_loss": minus the logarithm of the true class's probability, which counts as
          0.0001 at least: 9.2 at most. Use this when you deliver probabilities, or where a
          class is so rare that hardly any reading changes an answer.
        - a function of (y, probabilities) that gives one finite number, at least 0, for
          each row. Model files keep its name only.

        `cost_weight` is then what a unit of cost is worth in the unit of the risk.
    loss : float, dict or array-like of shape (n_classes, n_classes), default=None
        What wrong answers cost, in the unit of the prices. Leaves then give the answer of
        the least expected loss.

        - None: 1 each.
        - a number: every wrong answer costs that. Risk is then money: ``loss=500`` learns
          what ``cost_weight=1/500`` learns, with all risks times 500.
        - a dict of class to number: what it costs to mistake an example of that class.
        - a dict of class to dict of answer to number, or a matrix with a row for each true
          class and a column for each answer, classes sorted.
    class_weight : "balanced" or dict of class to float, default=None
        What an example of each class counts in the risk, 1 for those not named: short for
        a `loss` of so much for mistaking it. "balanced" lets all classes count the same as
        a whole. Decisions and answers change; probabilities stay those of the data.
    refer_cost : float, dict of class to float, or str, default=None
        What it costs to hand an example over to a person, in the unit of the risk: wrong
        answers, or money with a `loss`. It adds that exit wherever the
        tree can stop; decisions learn when to take it, by the same program. A dict says
        it for each true class; a string names the column of X that holds what each
        example costs, which a sensor of cost 0 reads, so that decisions see it. `predict`
        still gives the best guess; `referred` says who is handed over. None: never refer.
    max_cost : float, default=None
        No example ever spends more than this.
    structure : {"auto", "chain", "backward", "planned", "branched", "greedy", \
            "exhaustive", "cascade"}, list of str, SensorTree or dict, default="auto"
        The tree, learned or given.

        - "auto": the one of the least risk on held-out rows among a planned and a
          branched tree, a chain or, if the sensors are few, the exhaustive tree, and a
          cascade; each with the kinds of leaves that suit it. What a screen finds clearly
          worse gets no classifiers. `comparison_` says what was compared, and why the
          rest was not.
        - "chain": sensors in the order of the error they save per unit of cost, with an
          exit after each.
        - "backward": a chain too, in the order that is left when boosted trees on all
          sensors drop those that help them least per unit of cost. For sensors that tell
          something only together. With boosted leaves of many rows, "auto" compares it
          in place of "chain"; with others beside it, if sensors are many and rows few.
        - "planned": up to three purchases planned ahead, on cells of readings: levels
          where they are few, else quantiles or clusters. For sensors that tell something
          only together, or tell which others to buy, on few rows of few levels.
        - "branched": grown by a proper loss, counting what can be bought well after a
          purchase, with as many branches as clearly pay, while the risk on held-out rows
          falls. For sensors that tell which others matter.
        - "greedy": the paper's Algorithm 1, then clustering by common sensors.
        - "exhaustive": every order of buying. "cascade": the cheapest first.
        - a list of all sensors: a chain in that order, with an exit after each.
        - a tree of your own, also as nested dicts.

        From learned trees, sensors without which they are clearly better are removed, the
        dearest first, then leaves that no held-out row reaches. Leaves that no training
        example reaches are pruned.
    n_leaves : "auto" or int, default="auto"
        Leaves of a learned structure at most (K in the paper). "auto" is 96 for a
        branched tree, which ends earlier where more leaves do not lower the risk on
        held-out rows, 32 for a planned one (both 24 with leaves that take long), and 16
        for the others.
    n_exact : int or "all", default=3
        Extensions of a subset that "chain" and "greedy" compare by training their leaf
        classifier; a least-squares screen picks them. Boosted leaves are not trained for
        that: their screen decides. "all" trains them all, as published.
    max_time : float, default=None
        Seconds of the whole fit, from its first line, after which nothing new is begun:
        no step of a search, no further candidate for a tree.
        The tree found so far is finished: its leaf classifiers and its decisions. For
        `fit_path` it is for all models together, for `tradeoff_curve` for the whole curve.
    root_sensors : "auto" or list of str, default="auto"
        Sensors that every example acquires before the first decision. "auto" takes the
        free ones. If none is free, a chain begins with the one that lowers the risk most
        for its price, "exhaustive" and "cascade" with the cheapest; a branched tree begins
        with nothing, and what all buy first is its own choice. An empty list starts from
        nothing: the first decisions are then the same for all.
    classifier : {"auto", "linear", "logistic2", "boosted"} or scikit-learn classifier, \
            default="auto"
        Leaf classifier, fitted once per distinct set of sensors. A leaf answers with its
        most probable class.

        - "auto": the kind whose tree has the least risk on held-out rows, compared with
          the structures. "boosted" takes longest: it is tried where its held-out log-loss
          leads by more than a standard error, from 50 rows a class on, unless it would
          take disproportionately long; where readings are missing that no transformer
          fills in, it is the only one. `comparison_` says what was compared, and its
          `leaf` which was taken.
        - "linear": ridge logistic regression.
        - "logistic2": the paper's, logistic regression on the degree-2 polynomial basis.
        - "boosted": scikit-learn's HistGradientBoostingClassifier, with as many rounds as
          the rows that are held out ask for. A category of 5 levels or more is one column
          to it, split by sets of levels. Subsets are compared by one booster that was
          trained with sensors blanked out.
    calibration : {"sigmoid", "isotonic", "temperature"}, default=None
        Calibrate every leaf classifier by itself, on all examples, as
        CalibratedClassifierCV does.
    cv : int, splitter or iterable of (train, test), default=5
        Folds in which leaf classifiers are judged on rows they have not seen: errors and
        posteriors that decisions are learned from come out of fold, while the final
        classifiers are fitted on all rows. None judges them on their training rows, as
        published. By a number, rows are drawn into folds that have as many of each class
        as any other, equal ones like all others; rows that belong together are told to
        `fit` as `groups`. The only row, or group, of a class is never held out, with
        a warning. A splitter is shown the rows of positive weight and their groups, which
        it must keep whole; pairs are positions in the X that is given.
    random_state : int, RandomState instance or None, default=0
        Decides which rows are held out together where `cv` is a number; None draws anew
        each time.
    program : Program, default=None
        How decisions are learned, by which solver, and what follows: see `Program`. None
        is ``Program()``.
    calibrate_leaves : bool, default=True
        Put the probabilities of each leaf right, by a temperature and a bias for each
        class, on the training examples that reach it: where that clearly lowers their
        log-loss on folds that it was not learned from, and does not raise the risk there.
        Leaves that few examples reach change little. Answers may change by it, ways and
        costs do not. `calibration_report_` says what was compared. Without `cv` there is
        nothing to learn it from.
    outages : "auto" or bool, default="auto"
        Learn detours for examples blocked by an unavailable sensor: trees
        without it, of which each is taken if its risk on held-out rows is lower than that
        of the best leaf left. `outage_report_` says what each outage costs. "auto" does so
        while it adds little, for the sensors that are missed most: where leaves take long
        it learns smaller detours, or none for some. True learns all of them, in up to
        about twice the time of the fit. Without `cv` there are none.
    n_jobs : int, default=None
        Number of leaf classifiers fitted at a time, as in joblib, and of threads of the
        structured solver. None: one, and for a large linear program as many threads as
        the process may use cores. The result does not depend on it.
    verbose : bool, default=False
        Write one line per step of the fit to stderr. scikit-learn's callbacks, given with
        `set_callbacks`, hear of the same steps.
    unit : str, default=""
        What prices are counted in, as "EUR": it is kept with the model, and shown with
        every price.

    Attributes
    ----------
    tree_ : SensorTree
        The tree; its numbering is that of `apply`.
    certificate_ : Certificate
        Proved bounds of the linear program's optimum, and which decisions they speak of.
    decision_report_ : DecisionReport
        Training risk of the linear program, of its refinement and of the best single
        leaf, and which was kept.
    comparison_ : Comparison or None
        What was compared on held-out rows, what was taken, and what that is worth; print
        it. None where nothing was held out, or there was nothing to compare.
    calibration_report_ : CalibrationReport or None
        How leaves were calibrated, and why; print it. None with
        ``calibrate_leaves=False``, and where nothing was held out.
    structure_report_ : StructureReport
        How the structure was found: subsets, steps, why the search stopped, and what was
        pruned.
    fit_report_ : FitReport
        Where the time of the fit went; print it. It is not saved with the model.
    outage_report_ : OutageReport or None
        What the outage of each sensor costs, without a detour and on it; print it. None
        with ``outages=False``.
    fallback_leaf_ : int or None
        The leaf that all examples go to, if the fallback was used.
    training_cost_ : float
        Mean price of what the training examples buy, each at its own prices, judged out
        of fold.
    sensors_ : SensorSet
        Names, columns and prices.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    about_ : About
        What the model is about: unit, target, date, rows, held-out score. The name of
        the target is that of a series `y`.
    policy_ : Policy
        Everything that is needed to predict, without the data and the solver.
    n_features_in_ : int
        Number of columns seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns seen during `fit`, if they are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = SensorTreeClassifier(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 0, "dear": 5}, cost_weight=0.02)
    >>> model.fit(X, y).certificate_.converged
    True
    >>> print(model.tree_)
    node 0 knows cheap
    ├─ g0 ≤ 0: leaf 0 stops with cheap
    └─ g0 > 0, buy dear: leaf 1 stops with cheap, dear
    >>> bool(model.acquisition_cost(X).mean() < 5)
    True
    """

    cost_weight: float | str = "auto"

    @classmethod
    def as_published(cls, sensors: Any = None, **parameters: Any) -> Self:
        """Give the classifier of the paper: every improvement on it turned off.

        Parameters
        ----------
        sensors : dict of str to `Sensor` or columns, default=None
        **parameters
            Other parameters of the classifier; they win over the published setting.

        Examples
        --------
        >>> from sensortree import SensorTreeClassifier
        >>> SensorTreeClassifier.as_published(cost_weight=0.1).program.refine
        False
        """
        published: dict[str, Any] = {
            "n_leaves": 16,
            "n_exact": "all",
            "classifier": "logistic2",
            "cv": None,
            "program": Program.as_published(),
            "calibrate_leaves": False,
            "outages": False,
        }
        return cls(sensors, **{**published, **parameters})


@parameters
class SensorTreeRegressor(JointTree, LearnsJointly, BaseSensorTreeRegressor):
    """Predict a number with the sensors that are worth their price, example by example.

    The method of `SensorTreeClassifier` for numbers: leaves predict with the sensors bought
    on the way there, and the decision functions of all nodes are learned together by one
    linear program whose global optimum is certified. Only what leaves lose is another.

    Parameters
    ----------
    sensors, costs, max_cost, structure, n_leaves, n_exact, max_time, root_sensors, \
            program, outages, n_jobs, verbose, unit
        As in `SensorTreeClassifier`.
    cost_weight : "auto" or float, default="auto"
        What one unit of cost is worth (α in the paper), in the unit of the risk: squared
        units of y for "squared", units of y for "absolute" and "pinball". Larger buys
        less. "auto" is a hundredth of what the best single answer for all loses: of the
        variance of y for "squared", of its mean distance from the median for "absolute".
    risk : {"squared", "absolute", "pinball"} or callable, default="squared"
        What leaves lose, and so what is minimised beside the cost.

        - "squared": the squared distance from the truth. Leaves answer with the mean.
        - "absolute": the distance from the truth. Leaves answer with the median.
        - "pinball": each unit too low counts `quantile`, each unit too high the rest to 1.
          Leaves answer with that quantile.
        - a function of (y, answers) that gives one finite number, at least 0, for each
          row. Leaves answer with the mean. Model files keep its name only.
    quantile : float, default=0.5
        For "pinball": the value that is answered is not exceeded with this probability.
    regressor : {"auto", "linear", "quadratic", "boosted"} or scikit-learn regressor, \
            default="auto"
        Leaf regressor, fitted once per distinct set of sensors. Its answers keep within
        the numbers that it was fitted on.

        - "auto": the kind whose tree has the least risk on held-out rows, compared as in
          `SensorTreeClassifier`. `comparison_` says what was compared.
        - "linear": ridge regression, its penalty by evidence.
        - "quadratic": the same on the readings, their squares and products.
        - "boosted": scikit-learn's HistGradientBoostingRegressor, with as many rounds as
          the rows that are held out ask for, of squared errors or of the quantile.
    cv : int, splitter or iterable of (train, test), default=5
        As in `SensorTreeClassifier`. By a number, low and high values of y are dealt out
        to all folds alike.
    random_state : int, RandomState instance or None, default=0
        As in `SensorTreeClassifier`.

    Attributes
    ----------
    tree_, certificate_, decision_report_, comparison_, structure_report_, fit_report_, \
            outage_report_, fallback_leaf_, training_cost_, sensors_, about_, policy_, \
            n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import SensorTreeRegressor
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = 2 * X[:, 0] + (X[:, 0] > 0) * X[:, 1]
    >>> model = SensorTreeRegressor(
    ...     {"cheap": [0], "dear": [1]}, costs={"cheap": 0, "dear": 1}, cost_weight=0.1)
    >>> model.fit(X, y).certificate_.converged
    True
    >>> print(model.tree_)
    node 0 knows cheap
    ├─ g0 ≤ 0: leaf 0 stops with cheap
    └─ g0 > 0, buy dear: leaf 1 stops with cheap, dear
    >>> model.acquisition_cost([[-1.0, 0.5], [1.0, 0.5]])
    array([0., 1.])
    """

    cost_weight: float | str = "auto"


@parameters
class CascadeClassifier(LeavesOfClasses, LearnsJointly, BaseSensorTreeClassifier):
    """Buy sensors in one order and learn where to stop, by one linear program.

    The special case of `SensorTreeClassifier` that was published first (Wang,
    Trapeznikov and Saligrama, *An LP for Sequential Learning Under Budgets*, AISTATS
    2014): the tree is a chain with an exit after each sensor, and the decisions of all
    stages are learned together. There is no refinement and no fallback.

    Parameters
    ----------
    sensors, costs, cost_weight, risk, loss, class_weight, refer_cost, max_cost, \
            root_sensors, n_jobs, unit
        As in `SensorTreeClassifier`.
    classifier, calibration, cv, program
        As in `SensorTreeClassifier`, but the defaults are nearer to the published method:
        quadratic logistic leaves, judged on their training rows, and
        ``Program.as_published(savings="tight")``. As published are
        ``Program.as_published()``, whose bound is so loose that it stops too early even
        where sensors are free, and leaves that are ``LogisticRegression()``.
    order : list of str, default=None
        Order in which sensors are bought; None: the cheapest first.

    Attributes
    ----------
    certificate_ : Certificate
        Proved bounds of the linear program's optimum.
    tree_, sensors_, classes_, policy_, n_features_in_, feature_names_in_
        As in `SensorTreeClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import CascadeClassifier, Program
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = X[:, 0] + (np.abs(X[:, 0]) < 0.5) * X[:, 1] > 0
    >>> model = CascadeClassifier(
    ...     order=["x0", "x1"], cost_weight=0.05,
    ...     program=Program.as_published(savings="tight", decision_features="posterior"))
    >>> print(model.fit(X, y).tree_)
    node 0 knows x0
    ├─ g0 ≤ 0: leaf 0 stops with x0
    └─ g0 > 0, buy x1: leaf 1 stops with x0, x1
    >>> bool(1 < model.acquisition_cost(X).mean() < 2)
    True
    """

    cost_weight: float | str = "auto"
    refer_cost: Any = None
    order: Sequence[str] | None = None
    root_sensors: Any = "auto"
    program: Program | None = None

    _default_program: ClassVar[Program] = Program.as_published(savings="tight")

    def _asked(self) -> dict[str, Any]:
        chain = "cascade" if self.order is None else self.order
        return {**super()._asked(), "structure": chain}
