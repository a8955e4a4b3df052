"""Calibrate leaves on the examples that reach them, so that their probabilities agree.

A leaf's classifier was fitted to all examples, and answers those that the decisions send
to it. Of these, a class may be rarer, and the readings more alike, than of all. What it
says out of fold of the examples that reach the leaf tells how to put it right: with p what
it says and y the class, minimise over slope a and biases b

    sum_i w_i log-loss(y_i, p_i^a e^b, normalised) + (A/2) (a - a0)^2 + (B/2) |b|^2

where a0 is the one slope that suits the examples of all leaves together. The penalties
count as if some examples more had been seen that need nothing put right: leaves with few
visitors are left nearly as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sensortree.constants import (
    CALIBRATION_FLATTEST,
    CALIBRATION_NEAR,
    CALIBRATION_ON_BIAS,
    CALIBRATION_ON_SLOPE,
    CALIBRATION_STEPS,
    CLEARLY,
    COMPARED_ROWS,
)
from sensortree.learning.joint import Learned
from sensortree.learning.pose import Posed
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.leaves.rows import Observations
from sensortree.policy.about import HeldOut
from sensortree.policy.classifiers import LeafCalibration, log_likely, probabilities
from sensortree.sensors.loss import Loss, log_loss
from sensortree.text import PlainForm
from sensortree.types import Array, Mask, Rows

AS_SAID = "as said"
# What may be put right, from the form that leaves least free to the one that frees most.
ONE, SLOPES, BOTH = "one temperature", "temperatures", "temperatures and biases"
FORMS = (ONE, SLOPES, BOTH)

Calibrations = tuple[LeafCalibration, ...]


@dataclass(frozen=True, eq=False)
class Visitors:
    """Distinct training examples at the leaves that they reach, (n_rows,) each."""

    # Logarithms of what the leaf's classifier says, out of fold, (n_rows, n_classes).
    said: Array
    leaf: Rows
    y: Rows
    fold: Rows
    weight: Array
    answered: Mask  # whether the leaf's answer counts, and no person's
    n_leaves: int

    def take(self, rows: Rows) -> Visitors:
        """Some of them."""
        parts = ("said", "leaf", "y", "fold", "weight", "answered")
        return replace(self, **{name: getattr(self, name)[rows] for name in parts})


@dataclass(frozen=True)
class CalibrationReport(PlainForm):
    """How leaves were calibrated, and why.

    All figures are of training examples at the leaves that they reach, by classifiers and
    calibrations that were fitted without their fold.

    Attributes
    ----------
    kept : str
        What the model does: "as said" if nothing is put right.
    log_loss : dict of str to float
        Mean log-loss of each form.
    error : dict of str to float
        Standard error of its difference to what classifiers say.
    risk : dict of str to float
        Mean risk of each form, without costs, and without those who are handed over.
    wrong : dict of str to float
        Share of examples that each form answers wrongly.

    Examples
    --------
    >>> import numpy as np
    >>> from sensortree import Program, SensorTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> far = np.abs(X[:, 0])
    >>> score = np.where(far > 1, 1.5 * far - 1, 2 * X[:, 1] - 1)
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-score))
    >>> model = SensorTreeClassifier(
    ...     cost_weight=0.02, classifier="linear", risk="log_loss", structure="cascade",
    ...     program=Program(fallback=False))
    >>> print(model.fit(X, y).calibration_report_)
    leaves: temperatures and biases
    held-out log-loss: as said 0..., temperatures and biases 0.4...
    """

    kept: str
    log_loss: dict[str, float]
    error: dict[str, float]
    risk: dict[str, float]
    wrong: dict[str, float]

    def why_not(self, form: str) -> str:
        """What speaks against a form; "" if nothing does."""
        lower = self.log_loss[AS_SAID] - self.log_loss[form]
        if lower <= 0:
            return "not lower"
        if lower <= CLEARLY * self.error[form]:
            return "not clearly lower"
        return "its risk is higher" if self.risk[form] > self.risk[AS_SAID] else ""

    def carried_over(self, score: HeldOut) -> HeldOut:
        """Score of leaves as said, changed by as much as what was kept changes it.

        The score is of decisions that were learned without each fold, the change of those
        that were learned from all.
        """
        more = self.risk[self.kept] - self.risk[AS_SAID]
        wrong = self.wrong[self.kept] - self.wrong[AS_SAID]
        return replace(
            score,
            risk=score.risk + more,
            loss=max(score.loss + more, 0.0),
            error=min(max(score.error + wrong, 0.0), 1.0),
        )

    def __str__(self) -> str:
        said = []
        for form, value in self.log_loss.items():
            why = "" if form == AS_SAID else self.why_not(form)
            said.append(f"{form} {value:.4f}" + (f" ({why})" if why else ""))
        return f"leaves: {self.kept}\nheld-out log-loss: {', '.join(said)}"


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Leaves that were calibrated, if that is worth it."""

    leaves: Calibrations | None  # None if they are left as they are
    # What each leaf says of every distinct example, by classifiers and calibrations that
    # were fitted without its fold, (n_rows, n_classes) each.
    judged: list[Array]
    # None if no example was held out, or classifiers give no probabilities.
    report: CalibrationReport | None


def calibrate_leaves(
    leaves: LeafClassifiers, posed: Posed, learned: Learned
) -> Calibrated:
    """Calibrate the leaves of a tree in the form of the least held-out log-loss.

    They are left as they are unless that falls clearly, and the risk does not rise.
    """
    data, tree = leaves.data, posed.problem.tree
    rows, weight = data.distinct()
    judged = [leaves.posteriors[leaf.sensors][rows] for leaf in tree.leaves]
    fold = data.fold[rows]
    has_probabilities = hasattr(leaves.classifier, "predict_proba")
    if len(np.unique(fold[fold >= 0])) < 2 or not has_probabilities:
        return Calibrated(None, judged, None)
    leaf = posed.problem.route(learned.coef)
    said = np.stack(judged)[leaf, np.arange(len(rows))]
    answered = np.array([not end.refers for end in tree.leaves])[leaf]
    visitors = Visitors(
        log_likely(said), leaf, data.y[rows], fold, weight, answered, tree.n_leaves
    )
    held = visitors.take(np.flatnonzero(fold >= 0))
    final = fit_forms(held)
    fitted = fit_without_each(held, final)
    report = compare(said, fitted, visitors, data.loss, data.observations())
    if report.kept == AS_SAID:
        return Calibrated(None, judged, report)
    for k, posterior in enumerate(judged):
        for out, forms in fitted.items():
            rows_out = fold == out
            posterior[rows_out] = forms[report.kept][k](posterior[rows_out])
    return Calibrated(final[report.kept], judged, report)


def fit_without_each(
    visitors: Visitors, final: dict[str, Calibrations]
) -> dict[int, dict[str, Calibrations]]:
    """Calibrations in all forms, fitted without each fold in turn; to some of many rows.

    They set out from those that were fitted to all.
    """
    fitted = {}
    for out in np.unique(visitors.fold):
        rest = np.flatnonzero(visitors.fold != out)
        if len(rest) > COMPARED_ROWS:
            order = np.random.default_rng(0).permutation(len(rest))
            rest = np.sort(rest[order[:COMPARED_ROWS]])
        fitted[int(out)] = fit_forms(visitors.take(rest), final)
    return fitted


def compare(
    said: Array,
    fitted: dict[int, dict[str, Calibrations]],
    visitors: Visitors,
    loss: Loss,
    observations: Observations,
) -> CalibrationReport:
    """Judge forms on the folds that they were fitted without."""
    held = visitors.fold >= 0
    judged = observations.take(held)

    def each(values: Array) -> Array:
        return judged.each(values[held])

    losses, risks, wrong = {}, {}, {}
    for name in (AS_SAID, *FORMS):
        likely = said.copy()
        for out, forms in fitted.items() if name != AS_SAID else ():
            here = np.flatnonzero(visitors.fold == out)
            likely[here] = put_right(visitors.take(here), forms[name])
        losses[name] = each(log_loss(visitors.y, likely))
        lost = visitors.answered * loss.judge(visitors.y, likely)
        risks[name] = float(each(lost).mean())
        wrong[name] = float(each(loss.answer(likely) != visitors.y).mean())
    means = {name: float(values.mean()) for name, values in losses.items()}
    spread = {name: values - losses[AS_SAID] for name, values in losses.items()}
    error = {n: float(d.std() / np.sqrt(len(d))) for n, d in spread.items()}
    report = CalibrationReport(AS_SAID, means, error, risks, wrong)
    good = [name for name in FORMS if not report.why_not(name)]
    return replace(report, kept=min(good, key=means.__getitem__, default=AS_SAID))


def put_right(visitors: Visitors, calibrations: Calibrations) -> Array:
    """Probabilities of examples at their leaves, put right, (n_rows, n_classes)."""
    slope = np.array([leaf.slope for leaf in calibrations])[visitors.leaf]
    bias = np.stack([leaf.bias for leaf in calibrations])[visitors.leaf]
    return probabilities(slope[:, None] * visitors.said + bias)


def fit_forms(
    visitors: Visitors, start: dict[str, Calibrations] | None = None
) -> dict[str, Calibrations]:
    """Calibrations of all leaves, in each form; those without visitors are as all are.

    They set out from `start`, or else from the form before, which leaves less free.
    """
    n_classes, n_leaves = visitors.said.shape[1], visitors.n_leaves
    plain = LeafCalibration(1.0, np.zeros(n_classes))
    begin = plain if start is None else start[ONE][0]
    together = fit_leaf(visitors, 1.0, begin, biased=False)
    forms: dict[str, Calibrations] = {ONE: (together,) * n_leaves}
    each = [visitors.take(np.flatnonzero(visitors.leaf == k)) for k in range(n_leaves)]
    for form, before in ((SLOPES, ONE), (BOTH, SLOPES)):
        begins = forms[before] if start is None else start[form]
        forms[form] = tuple(
            fit_leaf(own, together.slope, at, biased=form == BOTH)
            for own, at in zip(each, begins, strict=True)
        )
    return forms


def fit_leaf(
    visitors: Visitors, around: float, start: LeafCalibration, *, biased: bool
) -> LeafCalibration:
    """Minimise the penalised log-loss of some examples, by Newton's method.

    `around` is a0, which the slope is held close to; `biased`, whether biases are free.
    """
    free = np.arange(1 + len(start.bias) * biased)
    theta = newton(visitors, np.r_[start.slope, start.bias], around, free)
    if theta[0] < CALIBRATION_FLATTEST:  # of a convex sum, the minimum is at the bound
        bound = np.r_[CALIBRATION_FLATTEST, theta[1:]]
        theta = newton(visitors, bound, around, free[1:])
    return LeafCalibration(float(theta[0]), theta[1:])


def newton(visitors: Visitors, theta: Array, around: float, free: Rows) -> Array:
    """The slope and biases of the least sum, of which only some are free."""
    z, y, w = visitors.said, visitors.y, visitors.weight
    rows, n_classes = np.arange(len(y)), z.shape[1]
    centre = np.r_[around, np.zeros(n_classes)]
    penalty = np.r_[CALIBRATION_ON_SLOPE, np.full(n_classes, CALIBRATION_ON_BIAS)]

    def judge(at: Array) -> tuple[float, Array]:
        """The sum, and the probabilities."""
        scores = at[0] * z + at[1:]
        scores -= scores.max(axis=1, keepdims=True)
        own = scores[rows, y]
        likely = np.exp(scores, out=scores)
        total = likely.sum(axis=1)
        likely /= total[:, None]
        lost = float(w @ (np.log(total) - own))
        return lost + 0.5 * float(penalty @ (at - centre) ** 2), likely

    if not len(free):
        return theta
    value, p = judge(theta)
    for _ in range(CALIBRATION_STEPS):
        # With e the class as 0 and 1: the gradient of a row's loss is (z (p - e), p - e),
        # its Hessian that of a log-sum-exp, diag(p) - p p^T, seen through (z, I).
        off = penalty * (theta - centre)
        mean = np.einsum("ij,ij->i", p, z)
        off[0] += w @ (mean - z[rows, y])
        hessian = np.diag(penalty)
        hessian[0, 0] += w @ (np.einsum("ij,ij,ij->i", p, z, z) - mean**2)
        if len(free) > 1:
            off[1:] += w @ p - np.bincount(y, w, n_classes)
            hessian[0, 1:] += np.einsum("i,ij,ij->j", w, p, z) - (w * mean) @ p
            hessian[1:, 0] = hessian[0, 1:]
            hessian[1:, 1:] += np.diag(w @ p) - (w[:, None] * p).T @ p
        step = np.linalg.solve(hessian[np.ix_(free, free)], off[free])
        length, before = 1.0, value
        while True:
            tried = theta.copy()
            tried[free] -= length * step
            value, p = judge(tried)
            if value <= before or length < CALIBRATION_NEAR:
                break
            length /= 2
        if value > before:
            break
        theta = tried
        if before - value <= CALIBRATION_NEAR * max(1.0, abs(before)):
            break
    return theta
