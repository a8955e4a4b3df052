"""What a sensor can be worth at most, and which cost more."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.optimize import linprog

from sensortree.constants import TELLS_VERY_CLEARLY
from sensortree.leaves.classifiers import LeafClassifiers
from sensortree.sensors.loss import SCORES, Loss, NumberLoss
from sensortree.sensors.market import Market, within
from sensortree.text import listed
from sensortree.types import Array


def most_worth(loss: Loss, n_classes: int) -> float:
    """The most that knowing more can save an example: V = max_p min_a p·L[:, a].

    Whatever is known, classes have some probabilities p there, and who stops answers
    with the a of the least expected loss; who knows the class loses only the least of
    its row. So no reading saves more than the largest of these least losses, whatever
    the data. It is 1 - 1/n_classes if every error counts 1. Where probabilities are
    judged, the most is lost where all classes are equally likely. Of numbers, see
    `NumberLoss.most_worth`.

    Examples
    --------
    >>> most_worth(Loss(), 2)
    0.5
    >>> import numpy as np
    >>> round(most_worth(Loss(np.array([[0.0, 60.0], [4000.0, 0.0]])), 2), 3)
    59.113
    """
    if isinstance(loss, NumberLoss):
        return loss.most_worth
    if loss.score is not None:
        most = 1.0 if loss.by_class is None else float(loss.by_class.max())
        known = loss.score.name in SCORES  # proper: the most is lost where all are even
        nothing = loss.score.of_knowing_nothing(n_classes)
        return most * (nothing if known else loss.score.largest)
    alike = 1.0 if loss.matrix is None else loss.per_mistake
    if alike is not None:
        return alike * (1.0 - 1.0 / n_classes)
    assert loss.matrix is not None
    regret = loss.matrix - loss.matrix.min(axis=1, keepdims=True)
    # maximise v over (p, v):  v ≤ p·regret[:, a] for all a,  p ≥ 0,  Σp = 1
    found = linprog(
        np.r_[np.zeros(n_classes), -1.0],
        A_ub=np.hstack([-regret.T, np.ones((n_classes, 1))]),
        b_ub=np.zeros(n_classes),
        A_eq=np.r_[np.ones(n_classes), 0.0][None, :],
        b_eq=[1.0],
    )
    return float(regret.max()) if found.fun is None else -float(found.fun)


def referral_may_pay(costs: Array, loss: Loss, n_classes: int) -> bool:
    """Whether handing over may cost less than the best answer, whatever is known.

    Who answers is not expected to lose more than `most_worth` above the least of the
    class; so a person who costs as much for every class, (n_samples, n_classes), is never
    worth it.

    Examples
    --------
    >>> import numpy as np
    >>> [referral_may_pay(np.full((1, 2), c), Loss(), 2) for c in (0.4, 0.5)]
    [True, False]
    """
    least = 0.0 if loss.matrix is None else loss.matrix.min(axis=1)
    return bool((costs - least).min() < most_worth(loss, n_classes))


def least_prices(market: Market) -> dict[str, float]:
    """The least that each sensor may cost anybody, all discounts given."""
    prices = np.atleast_2d(market.discounted()).min(axis=0)
    return dict(zip(market.sensors.names, prices.tolist(), strict=True))


def never_pay(
    market: Market, loss: Loss, n_classes: int, cost_weight: float
) -> tuple[str, ...]:
    """Sensors that no example should buy: they cost no less than they can be worth.

    Those, too, that need such a sensor before. Who would buy one and stops instead saves
    its least price at least, and loses no more than `most_worth`.
    """
    worth = most_worth(loss, n_classes)
    too_dear = {
        name
        for name, price in least_prices(market).items()
        if price > 0 and cost_weight * price >= worth
    }
    sensors = market.sensors
    return tuple(n for n in sensors.names if sensors.closure(n) & too_dear)


def price_advice(
    market: Market,
    loss: Loss,
    n_classes: int,
    cost_weight: float,
    buys_nothing: bool = False,
    informative: bool = True,
    same_answers: str | None = None,
    ended_early: str | None = None,
) -> str | None:
    """What to know, and to do, about sensors that are too dear; None if none is.

    `buys_nothing`: a model that was learned buys nothing, though not all is free.
    `informative`: what can be bought was found to tell more than is known for nothing.
    `same_answers`: what to do where no sensor changes answers; see `same_answers_advice`.
    `ended_early`: what ended the fit before all was compared.
    """
    too_dear = never_pay(market, loss, n_classes, cost_weight)
    counts = f"at cost_weight={cost_weight:g}"
    if too_dear:
        price = max(least_prices(market)[name] for name in too_dear)
        counted = " wrong answers" if loss.plain else ""
        counts = (
            f"{listed(too_dear)} can never pay: {counts} a price of {price:g} counts "
            f"{cost_weight * price:g}{counted}, and no reading saves more than "
            f"{most_worth(loss, n_classes):.4g}"
        )
    if not buys_nothing:
        return f"{counts}. {_remedy(loss)}" if too_dear else None
    message = "the model buys nothing"
    least = market.least_price()
    if market.max_cost is not None and not within(least, market.max_cost):
        return f"{message}: all cost more than max_cost={market.max_cost:g}. Raise it."
    left = set(market.sensors.names) - market.free() - set(too_dear)
    if ended_early is not None and left:
        return (
            f"{message}: {ended_early} before every tree was compared, so that this does "
            f"not say that none pays. Let the fit take longer."
        )
    if not informative:
        return (
            f"{message}: on held-out rows, no sensor for sale tells more about the target "
            f"than is known for free. It takes more rows, or other sensors."
        )
    if same_answers is not None:
        return f"{message}: {same_answers}"
    if left and not too_dear:
        message += f": {counts} no sensor saves what it costs on held-out rows"
    elif left:
        message += f": no sensor saves what it costs on held-out rows, and {counts}"
    else:
        message += f": {counts}"
    return f"{message}. {_remedy(loss)}"


def _remedy(loss: Loss) -> str:
    """What to do where sensors are too dear."""
    if loss.score is not None or loss.numbers:
        return (
            "Lower cost_weight: it is what a unit of cost is worth in the risk's unit."
        )
    if loss.matrix is None:
        return (
            "If prices are money, say what a wrong answer costs (loss=...); or "
            "lower cost_weight."
        )
    return "If prices and losses are in one unit, that is right; else correct one."


def same_answers_advice(
    leaves: LeafClassifiers, known: frozenset[str], cost_weight: float | None
) -> str | None:
    """What to do where no sensor changes the most likely answer; None if one does.

    That is so if no set of sensors saves errors, out of fold, that can be told from chance
    beside what is `known` for nothing, whatever it costs. Where a class is rare, sensors
    may still say much about how likely it is. With what is proposed in place of errors,
    some set of sensors clearly saves twice what it costs. With a budget, the cost weight is
    None: it is found.
    """
    data, loss = leaves.data, leaves.data.loss
    alike = loss.plain or (loss.score is None and loss.per_mistake is not None)
    if loss.numbers or not alike or data.may_refer or data.continued is not None:
        return None
    market, weight = data.market(None), data.weight / data.weight.sum()
    every = frozenset(market.sensors.names)
    with warnings.catch_warnings():  # a classifier's complaints are no news here
        warnings.simplefilter("ignore")
        leaves.judge([known, *([every] if market.allows(every) else [])])
    costs = {s: market.mean_cost(s) for s in leaves.posteriors if s > known}

    def pays(loss: Loss) -> float:
        """The most that sensors clearly save of a loss for a unit of what they cost."""
        most, least = 0.0, loss.judge(data.y, leaves.posteriors[known])
        for subset, cost in costs.items():
            saved = least - loss.judge(data.y, leaves.posteriors[subset])
            mean = float(weight @ saved)
            noise = float(np.sqrt(weight**2 @ (saved - mean) ** 2))
            clear = mean - TELLS_VERY_CLEARLY * noise
            most = max(most, clear / cost if cost > 0 else 0.0)
        return most

    if pays(loss) > 0:
        return None
    share = np.bincount(data.y, weight, len(data.classes))
    even = 1 / (len(share) * share)  # every class counts the same as a whole
    balanced = pays(Loss(even[:, None] * (1 - np.eye(len(share))))) / 2
    likely = pays(Loss(score=SCORES["log_loss"])) / 2
    names, most = data.classes.tolist(), int(share.argmax())
    if not balanced + likely:
        return None
    advice = [
        f"no sensor changes the most likely answer ({names[most]!r} is right for "
        f"{100 * share[most]:.3g} % of all), and no price, cost weight or budget changes "
        f"that. Say what mistaking each class costs, in the unit of prices"
    ]
    if balanced > 0:
        told = [f"{float(f'{each / balanced:.2g}'):g}" for each in even]
        given = ", ".join(f"{n!r}: {c}" for n, c in zip(names, told, strict=True))
        keys = "; ".join(f'"{n}" = {c}' for n, c in zip(names, told, strict=True))
        lower = f", cost_weight={balanced:.2g}"
        lower = lower if cost_weight is not None and balanced < cost_weight else ""
        advice[0] += f", as in loss={{{given}}} (in sensors.toml: [loss], then {keys})"
        advice.append(f"let rare classes count more: class_weight='balanced'{lower}")
    if likely > 0:
        python, command = "risk='log_loss'", "--risk log_loss"
        if cost_weight is not None:
            python += f", cost_weight={likely:.2g}"
            command += f" --cost-weight {likely:.2g}"
        advice.append(f"judge probabilities: {python} ({command})")
    return f"{'; or '.join(advice)}."
