"""`SensorTreeClassifier`: the decisions of a tree, jointly, by one linear program."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sensortree.estimators.base import BaseSensorTreeClassifier
from sensortree.estimators.jointly import JOINT, LearnsJointly
from sensortree.learning.calibrating import CalibrationReport


class SensorTreeClassifier(LearnsJointly, BaseSensorTreeClassifier):
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
        priced, money. Larger buys less. "auto" is 1 with a `mistake_cost` or a `loss`,
        which are then in the unit of the prices, and 0.01 without.
    risk : {"error", "brier", "log_loss"} or callable, default="error"
        What leaves lose, and so what is minimised beside the cost.

        - "error": 1 for a wrong answer, or what `mistake_cost`, `loss` or `class_weight`
          says. For who acts on answers.
        - "brier": half the squared distance of the probabilities from the truth: 0 if
          sure and right, 1 if sure and wrong.
        - "log_loss": minus the logarithm of the true class's probability, which counts as
          0.0001 at least: 9.2 at most. For who is sold probabilities, or where a class
          is so rare that hardly any reading changes an answer.
        - a function of (y, probabilities) that gives one finite number, at least 0, for
          each row. Model files keep its name only.

        `cost_weight` is then what a unit of cost is worth in the unit of the risk.
    mistake_cost : float, default=None
        What one wrong answer costs, in the unit of the prices: short for a `loss` of so
        much for every wrong answer. Risk is then money: ``mistake_cost=500`` learns what
        ``cost_weight=1/500`` learns, with all risks times 500. If it differs between
        classes, give a `loss` instead.
    loss : dict or array-like of shape (n_classes, n_classes), default=None
        What wrong answers cost. None: 1 each. A dict of class to number: what it costs to
        mistake an example of that class. A dict of class to dict of answer to number, or
        a matrix with a row for each true class and a column for each answer, classes
        sorted. Leaves then give the answer of the least expected loss.
    class_weight : "balanced" or dict of class to float, default=None
        What an example of each class counts in the risk, 1 for those not named: short for
        a `loss` of so much for mistaking it. "balanced" lets all classes count the same as
        a whole. Decisions and answers change; probabilities stay those of the data.
    refer_cost : float, dict of class to float, or str, default=None
        What it costs to hand an example over to a person, in the unit of the risk: wrong
        answers, or money with a `mistake_cost` or a `loss`. It adds that exit wherever the
        tree can stop; decisions learn when to take it, by the same program. A dict says
        it for each true class; a string names the column of X that holds what each
        example costs, which a sensor of cost 0 reads, so that decisions see it. `predict`
        still gives the best guess; `referred` says who is handed over. None hands over
        nobody.
    max_cost : float, default=None
        No example ever spends more than this.
    structure : {"auto", "chain", "backward", "planned", "branched", "greedy", \
            "exhaustive", "cascade"}, SensorTree or dict, default="auto"
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
        - a tree of your own, also as nested dicts.

        From learned trees, sensors without which they are clearly better are removed, the
        dearest first, and leaves that no training example reaches are pruned.
    n_leaves : "auto" or int, default="auto"
        Leaves of a learned structure at most (K in the paper). "auto" is 96 for a
        branched tree (24 with leaves that take long), which ends earlier where more
        leaves do not lower the risk on held-out rows, and 16 for the others.
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
          leads by more than a standard error, and not below 100 rows, or where it would
          take out of proportion long; where readings are missing that no transformer
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
    savings : {"tight", "published"}, default="tight"
        What an example's savings are measured against: the worst leaf for that example,
        or the paper's one maximal risk, all sensors bought and a wrong answer. The risk is
        the same, but the tight bound is closer to it: an example for which all leaves are
        equally good no longer pulls every decision towards 0.
    errors : {"smoothed", "observed"}, default="smoothed"
        Error of a leaf on a training example: as published, 0 or 1 by the label; or the
        mean of that and of the probability that the leaf's answer is wrong, by the
        posterior of the classifier that is best on held-out rows (least log-loss), which
        holds less noise. Where no classifier beats the class prior on held-out rows, and
        with ``cv=None``, errors are observed.
    decision_features : {"posterior+raw", "posterior", "raw", "quadratic"} or transformer, \
            default="posterior+raw"
        What decision functions are linear in: the readings known at the node, "raw", as
        published; the posterior of a classifier on them, with its largest probability,
        the lead over the next, and the entropy; both; both with squares and products of
        the posterior features; or what a scikit-learn transformer makes of the readings.
        With the posterior, more than 150 readings at a node are left to it. The default
        also sees each level of a reading that takes 3 to 8 values, which may be a code.
    refine : bool, default=True
        Improve the solution of the linear program node by node, on the risk itself
        rather than its convex bound. A step is kept only if the risk falls.
    solver : str, default="structured"
        Solver of the linear program; see `sensortree.program.solve`.
    tol : float, default=1e-6
        Relative gap to which the optimum is certified.
    l2 : "auto" or float, default="auto"
        Ridge penalty (l2/2) |θ|² on the decision functions, whose features are
        standardised; 0 is the paper's program. "auto" is 30 times the mean difference
        between an example's worst and best leaf: felt on hundreds of examples, negligible
        on tens of thousands. It is 0 for solvers that cannot minimise a ridge penalty.
    l1 : float, default=0.0
        Penalty l1 |θ|₁ on the decision functions.
    fallback : bool, default=True
        Compare trees with one set of sensors for all and with buying nothing, on
        held-out rows: the least risk wins, but a purchase must lead nothing by more than
        chance would one time in twenty (1.645 paired standard errors). A tree of your own
        is kept. Every example is sent to the single best leaf, too, if that has a lower
        training risk than the decisions.
        False keeps the decisions as they are, as published.
    calibrate_leaves : bool, default=True
        Put the probabilities of each leaf right, by a temperature and a bias for each
        class, on the training examples that reach it: where that clearly lowers their
        log-loss on folds that it was not learned from, and does not raise the risk there.
        Leaves that few examples reach change little. Answers may change by it, ways and
        costs do not. `calibration_report_` says what was compared. Without `cv` there is
        nothing to learn it from.
    outages : "auto" or bool, default="auto"
        Learn detours for examples that a sensor which cannot be had would hold up: trees
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

    calibration_report_: CalibrationReport | None

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BaseSensorTreeClassifier._parameter_constraints,
        **JOINT,
        "calibrate_leaves": ["boolean"],
    }

    def __init__(
        self,
        sensors: Any = None,
        *,
        costs: Any = None,
        cost_weight: float | str = "auto",
        risk: Any = "error",
        mistake_cost: float | None = None,
        loss: Any = None,
        class_weight: Any = None,
        refer_cost: Any = None,
        max_cost: float | None = None,
        structure: Any = "auto",
        n_leaves: int | str = "auto",
        n_exact: int | str = 3,
        max_time: float | None = None,
        root_sensors: Any = "auto",
        classifier: Any = "auto",
        calibration: str | None = None,
        cv: Any = 5,
        random_state: Any = 0,
        savings: str = "tight",
        errors: str = "smoothed",
        decision_features: Any = "posterior+raw",
        refine: bool = True,
        solver: str = "structured",
        tol: float = 1e-6,
        l2: float | str = "auto",
        l1: float = 0.0,
        fallback: bool = True,
        calibrate_leaves: bool = True,
        outages: bool | str = "auto",
        n_jobs: int | None = None,
        verbose: bool = False,
        unit: str = "",
    ):
        self.sensors = sensors
        self.costs = costs
        self.cost_weight = cost_weight
        self.risk = risk
        self.mistake_cost = mistake_cost
        self.loss = loss
        self.class_weight = class_weight
        self.refer_cost = refer_cost
        self.max_cost = max_cost
        self.structure = structure
        self.n_leaves = n_leaves
        self.n_exact = n_exact
        self.max_time = max_time
        self.root_sensors = root_sensors
        self.classifier = classifier
        self.calibration = calibration
        self.cv = cv
        self.random_state = random_state
        self.savings = savings
        self.errors = errors
        self.decision_features = decision_features
        self.refine = refine
        self.solver = solver
        self.tol = tol
        self.l2 = l2
        self.l1 = l1
        self.fallback = fallback
        self.calibrate_leaves = calibrate_leaves
        self.outages = outages
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.unit = unit

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
        >>> SensorTreeClassifier.as_published(cost_weight=0.1).refine
        False
        """
        published: dict[str, Any] = {
            "n_leaves": 16,
            "n_exact": "all",
            "classifier": "logistic2",
            "cv": None,
            "savings": "published",
            "errors": "observed",
            "decision_features": "raw",
            "refine": False,
            "l2": 0.0,
            "l1": 0.0,
            "fallback": False,
            "calibrate_leaves": False,
            "outages": False,
        }
        return cls(sensors, **{**published, **parameters})
