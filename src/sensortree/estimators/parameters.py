"""Parameters of estimators: each declared once; `Program`; nested and renamed ones.

A class under `parameters` declares its parameters as annotated defaults, as a dataclass
does, and inherits those of its bases. It is no dataclass: Dask and others compare those by
their fields alone, and a fitted model is more than its parameters.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypeVar, cast, dataclass_transform

from sklearn.base import clone

from sensortree.exceptions import ParameterError, SensorError
from sensortree.sensors.sensor import Sensor
from sensortree.text import listed

E = TypeVar("E", bound=type)

# Parameters that are declared -------------------------------------------------------------


@dataclass(frozen=True)
class Declared:
    """The default of a parameter, and whether it must be given by name."""

    default: Any
    kw_only: bool = True


def parameter(*, default: Any, kw_only: bool = True) -> Any:
    """Declare a parameter that may be given by position too."""
    return Declared(default, kw_only)


@dataclass_transform(
    kw_only_default=True, eq_default=False, field_specifiers=(parameter,)
)
def parameters(cls: E) -> E:
    """Give a class a constructor that stores the parameters that it and its bases declare.

    Examples
    --------
    >>> @parameters
    ... class Shop:
    ...     prices: dict | None = parameter(default=None, kw_only=False)
    ...     unit: str = ""
    >>> import inspect
    >>> print(inspect.signature(Shop))
    (prices=None, *, unit='')
    >>> Shop({"tea": 2}).prices
    {'tea': 2}
    """
    declared: dict[str, Declared] = {}
    for base in reversed(cls.__mro__[1:]):
        declared |= vars(base).get("_declared", {})
    for name, kind in inspect.get_annotations(cls).items():
        if "ClassVar" not in str(kind) and name in vars(cls):
            given = vars(cls)[name]
            own = given if isinstance(given, Declared) else Declared(given)
            declared[name] = own
            setattr(cls, name, own.default)
    named, placed = (
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    taken = [inspect.Parameter("self", placed)]
    for name, one in declared.items():
        kind = named if one.kw_only else placed
        taken.append(inspect.Parameter(name, kind, default=one.default))
    signature = inspect.Signature(sorted(taken, key=lambda one: one.kind))

    def store(self: Any, *args: Any, **given: Any) -> None:
        if not given.keys() <= declared.keys():
            given = with_new_names(self, declared, given)
        try:
            bound = signature.bind(self, *args, **given)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}() {error}") from None
        bound.apply_defaults()
        for name in bound.arguments.keys() - {"self"}:
            setattr(self, name, bound.arguments[name])

    made, constructor = cast(Any, cls), cast(Any, store)
    constructor.__name__, constructor.__signature__ = "__init__", signature
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    made._declared, made.__init__ = declared, constructor
    return cls


@parameters
class Buying:
    """What every estimator is told of sensors and their prices."""

    sensors: Any = parameter(default=None, kw_only=False)
    costs: Any = None
    max_cost: float | None = None
    unit: str = ""


@parameters
class LeavesOfClasses:
    """Classifiers of leaves, and what they lose."""

    risk: Any = "error"
    class_weight: Any = None
    classifier: Any = "logistic2"
    calibration: str | None = None
    cv: Any = None
    n_jobs: int | None = None


@parameters
class LeavesOfNumbers:
    """Regressors of leaves, and what they lose."""

    risk: Any = "squared"
    quantile: float = 0.5
    regressor: Any = "auto"
    cv: Any = 5
    n_jobs: int | None = None


@parameters
class TreeSearch:
    """Which tree, and how long it may take to find it."""

    structure: Any = "auto"
    n_leaves: int | str = "auto"
    n_exact: int | str = 3
    max_time: float | None = None
    root_sensors: Any = "auto"
    random_state: Any = 0
    verbose: bool = False


# Program ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, repr=False)
class Program:
    """How decisions are learned: the linear program, its solver, and what follows it.

    The defaults suit most data. Change one without the others by
    ``Program(l2=0.1)``, or ``model.set_params(program__l2=0.1)``.

    Parameters
    ----------
    savings : {"tight", "published"}, default="tight"
        What an example's savings are measured against: the worst leaf for that example,
        or the paper's one maximal risk, all sensors bought and a wrong answer. The risk is
        the same, but the tight bound is closer to it: an example for which all leaves are
        equally good no longer pulls every decision towards 0.
    errors : {"smoothed", "observed"}, default="smoothed"
        Error of a leaf on a training example: as published, 0 or 1 by the label; or the
        mean of that and of the probability that the leaf's answer is wrong, by the
        posterior of the classifier that is best on held-out rows (least log-loss), which
        holds less noise. Of numbers: the loss as observed; or the mean of that and of the
        loss that is expected by the answer and spread of the best leaf. Where no
        classifier beats the class prior on held-out rows, and with ``cv=None``, errors
        are observed.
    decision_features : str or transformer, default="auto"
        What decision functions are linear in.

        - "raw": the readings known at the node, as published.
        - "posterior" ("prediction" of a regressor): what a classifier says of them, with
          its largest probability, the lead over the next, and the entropy; of a regressor
          the answer and its spread.
        - "posterior+raw" ("prediction+raw"): both, and each level of a reading that takes
          3 to 8 values, which may be a code. More than 150 readings at a node are left to
          the posterior. "auto" is this one.
        - "quadratic": both, with squares and products of the posterior features.
        - a scikit-learn transformer: what it makes of the readings.
    l2 : "auto" or float, default="auto"
        Ridge penalty (l2/2) |θ|² on the decision functions, whose features are
        standardised; 0 is the paper's program. "auto" is 30 times the mean difference
        between an example's worst and best leaf: felt on hundreds of examples, negligible
        on tens of thousands. It is 0 for solvers that cannot minimise a ridge penalty.
    l1 : float, default=0.0
        Penalty l1 |θ|₁ on the decision functions.
    solver : str, default="structured"
        Solver of the linear program; see `sensortree.program.solve`.
    tol : float, default=1e-6
        Relative gap to which the optimum is certified.
    refine : bool, default=True
        Improve the solution of the linear program node by node, on the risk itself
        rather than its convex bound. A step is kept only if the risk falls.
    fallback : bool, default=True
        Compare trees with one set of sensors for all and with buying nothing, on
        held-out rows: the least risk wins, but a purchase must lead nothing by more than
        chance would one time in twenty (1.645 paired standard errors). A tree of your own
        is kept. If the single best leaf has a lower training risk than the decisions,
        every example is sent there. False keeps the decisions as they are, as published.

    Examples
    --------
    >>> from sensortree import Program
    >>> Program(l2=0.1)
    Program(l2=0.1)
    """

    savings: str = "tight"
    errors: str = "smoothed"
    decision_features: Any = "auto"
    l2: float | str = "auto"
    l1: float = 0.0
    solver: str = "structured"
    tol: float = 1e-6
    refine: bool = True
    fallback: bool = True

    @classmethod
    def as_published(cls, **changes: Any) -> Self:
        """Give the paper's program: every improvement on it turned off.

        Parameters
        ----------
        **changes
            Parameters of `Program` that are to differ from it.
        """
        published: dict[str, Any] = {
            "savings": "published",
            "errors": "observed",
            "decision_features": "raw",
            "l2": 0.0,
            "refine": False,
            "fallback": False,
        }
        return cls(**{**published, **changes})

    def __repr__(self) -> str:
        default = {field.name: field.default for field in fields(self)}
        changed = {n: v for n, v in vars(self).items() if v != default[n]}
        return f"Program({written(changed)})"

    def nested(self) -> dict[str, Any]:
        """Parameters by name, and those of its transformer if it has one."""
        features = self.decision_features
        inner = features.get_params() if hasattr(features, "get_params") else {}
        return {
            **vars(self),
            **{f"decision_features__{name}": value for name, value in inner.items()},
        }

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Give a copy with other values of some parameters, or of its transformer's."""
        changes = dict(changes)
        if inner := taken_out(changes, "decision_features__"):
            features = changes.get("decision_features", self.decision_features)
            changes["decision_features"] = clone(features).set_params(**inner)
        for name in changes:
            if name not in IN_PROGRAM:
                raise ParameterError(
                    f"Program has no parameter {name!r}; its parameters are "
                    f"{', '.join(IN_PROGRAM)}."
                )
        return replace(self, **changes)


IN_PROGRAM = tuple(field.name for field in fields(Program))


def written(given: Mapping[str, Any]) -> str:
    """Keyword arguments as they are written in a call."""
    return ", ".join(f"{name}={value!r}" for name, value in given.items())


# Names that parameters had ----------------------------------------------------------------


def with_new_names(
    model: Any,
    names: Collection[str],
    given: Mapping[str, Any],
    *,
    setting: bool = False,
) -> dict[str, Any]:
    """Translate keywords of version 0.1, with a warning that shows what to write instead.

    `names` are the parameters of the model; what was never one stays as it is. With
    `setting`, keywords are for `set_params` rather than for the constructor.
    """
    moved = {*IN_PROGRAM} - {*names} if "program" in names else set()
    of_program = {n: v for n, v in given.items() if n.partition("__")[0] in moved}
    is_priced = "mistake_cost" in given and "loss" in names
    old = [*of_program, *(["mistake_cost"] if is_priced else [])]
    if not old:
        return dict(given)
    new = {name: value for name, value in given.items() if name not in old}
    shown: dict[str, Any] = {}
    if of_program:
        before = given.get("program")
        new["program"] = (before or model._program).changed(of_program)
        shown["program"] = new["program"]
        if setting:
            shown = {f"program__{name}": value for name, value in of_program.items()}
    if is_priced and given["mistake_cost"] is not None:
        if given.get("loss") is not None:
            raise ParameterError(
                "loss and mistake_cost both say what wrong answers cost; leave out "
                "mistake_cost, which is the old name of a loss that is one number."
            )
        new["loss"] = shown["loss"] = given["mistake_cost"]
    call = "set_params" if setting else type(model).__name__
    needs = ", after `from sensortree import Program`"
    needs = "" if setting or not of_program else needs
    warnings.warn(
        f"{listed(old)} {'is' if len(old) == 1 else 'are'} deprecated and will be removed "
        f"in the next minor release; write {call}({written(shown)}){needs}.",
        FutureWarning,
        stacklevel=3,
    )
    return new


# Nested parameters ------------------------------------------------------------------------

OF_SENSORS, OF_PROGRAM = "sensors__", "program__"
OWN = tuple(field.name for field in fields(Sensor))
INNER = "transformer__"


def taken_out(params: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Take parameters that begin with a prefix out, and give them without it."""
    return {
        name.removeprefix(prefix): params.pop(name)
        for name in tuple(params)
        if name.startswith(prefix)
    }


def parameters_of(sensors: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of declared sensors and of their transformers, by nested name."""
    found: dict[str, Any] = {}
    for name, sensor in sensors.items():
        found[str(name)] = sensor
        if not isinstance(sensor, Sensor):
            continue
        found.update({f"{name}__{own}": getattr(sensor, own) for own in OWN})
        if hasattr(sensor.transformer, "get_params"):
            inner = sensor.transformer.get_params(deep=True)
            found.update({f"{name}__{INNER}{p}": value for p, value in inner.items()})
    return found


def with_parameters(sensors: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Sensors as declared, some parameters changed in copies: ``{"blood__cost": 3.0}``."""
    if not isinstance(sensors, Mapping):
        raise ParameterError(
            f"{OF_SENSORS}{min(given)} is of a sensor, but none are declared by name; set "
            f"sensors={{'blood': Sensor([...])}} first."
        )
    changes: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        # Names may hold "__" too.
        names = [n for n in sensors if key == n or key.startswith(f"{n}__")]
        if not names:
            raise ParameterError(
                f"{OF_SENSORS}{key} names {key.partition('__')[0]!r}, which is not a "
                f"sensor; the sensors are {listed(sensors)}."
            )
        name = max(names, key=len)
        changes.setdefault(name, {})[key[len(name) + 2 :]] = value
    return {
        name: _changed(name, sensor, changes.get(name, {}))
        for name, sensor in sensors.items()
    }


def _changed(name: str, declared: Any, change: dict[str, Any]) -> Any:
    """One sensor with some parameters changed, of its own and of its transformer."""
    sensor, inner = change.pop("", declared), taken_out(change, INNER)
    unknown = [key for key in change if key not in OWN]
    if unknown:
        raise ParameterError(
            f"sensor {name!r} has no parameter {unknown[0]!r}; its parameters are "
            f"{', '.join(OWN)}, and {INNER}... for those of its transformer."
        )
    if not change and not inner:
        return sensor
    if not isinstance(sensor, Sensor):
        raise ParameterError(
            f"sensor {name!r} is declared by its columns alone, so it has no parameter "
            f"{min([*change, *inner])!r}; declare it as Sensor([...]), or set its price in "
            f"costs."
        )
    try:
        sensor = replace(sensor, **change)
    except SensorError as error:
        raise SensorError(f"sensor {name!r}: {error}") from error
    if not inner:
        return sensor
    if sensor.transformer is None:
        raise ParameterError(
            f"sensor {name!r} has no transformer, so it has no parameter "
            f"'{INNER}{min(inner)}'; give it one first: {OF_SENSORS}{name}__transformer=..."
        )
    try:
        transformer = clone(sensor.transformer).set_params(**inner)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"the transformer of sensor {name!r} cannot be given "
            f"{listed(sorted(inner))}: {error}"
        ) from error
    return replace(sensor, transformer=transformer)
