"""`retrace`: where an example stands, by what it has bought and what it could not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sensortree.policy.session import Session
from sensortree.policy.steps import Because
from sensortree.types import Array

if TYPE_CHECKING:
    from sensortree.policy.policy import Policy


class Stand(NamedTuple):
    """Where an example stands.

    Attributes
    ----------
    sensor : str or None
        What it asks for next; None where it has stopped.
    price : float
        What that costs now.
    place : int
        Where it has stopped, or last decided.
    said : ndarray of shape (n_outputs,)
        What is said there.
    because : {"policy", "limit", "unavailable"}
        Why it came there.
    around : str or None
        The sensor whose detour the place is of.
    referred : bool
    """

    sensor: str | None
    price: float
    place: int
    said: Array
    because: Because
    around: str | None
    referred: bool


def retrace(
    policy: Policy,
    free: Mapping[str, tuple[Any, ...]],
    bought: Mapping[str, tuple[Any, ...]],
    unavailable: Mapping[str, str | None],
    prices: Mapping[str, float | None] | None = None,
) -> Stand:
    """Lead an example from the root to where it stands, as its session would be led.

    Nothing is said of values that training never saw: that was said when they came.

    Parameters
    ----------
    policy : Policy
    free, bought : mapping of sensor to values in column order
        What was known for nothing, and what was paid for.
    unavailable : mapping of sensor to str or None
        What cannot be had, and why.
    prices : mapping of sensor to float, default=None
        Prices of the example; see `Session`.
    """
    session = Session(policy, {}, None, prices)
    session._know(free)
    while session._end is None:
        name = session._pending[0]
        if name in bought:
            session._tell(name, bought[name], replace=False)
        elif name in unavailable:
            session.unavailable(name, unavailable[name])
        else:
            return _asking(session, name)
    decision = session.decision()
    return Stand(
        None,
        0.0,
        decision.place,
        decision.proba,
        decision.stopped_because,
        decision.around,
        decision.referred,
    )


def _asking(session: Session, name: str) -> Stand:
    """Where a session stands that asks for a sensor."""
    route, node = session._last or (session._policy, session._policy.tree.n_nodes)
    said = session._evidence.posterior(route.places[~node])
    around = next(
        (name for name, way in session._policy.around.items() if way is route), None
    )
    price = session._allowance.price_of(name)
    return Stand(
        name,
        price,
        ~node,
        np.asarray(said[0]),
        session._because,
        around,
        route.hands_over_one(~node, said),
    )
