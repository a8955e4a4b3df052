"""Whether a loaded model answers alike when asked at once and step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensortree.exceptions import ModelFileError
from sensortree.persistence.saved import SavedModel

N_ROWS = 50


def check_answers(model: SavedModel, n_rows: int = N_ROWS) -> int:
    """Ask about made-up rows in both ways; the number of rows, if all agree."""
    policy, sensors = model.policy_, model.sensors_
    X = made_up_rows(model, n_rows)
    answers, costs, places = model.predict(X), model.acquisition_cost(X), model.apply(X)
    for row in range(n_rows):
        values = X[row]

        def read(
            name: str, columns: tuple[str, ...], values: NDArray[Any] = values
        ) -> list[Any]:
            return [values[c] for c in sensors.columns[sensors.index(name)]]

        prices = {
            sensors.names[j]: float(values[sensors.terms[j].price_column])
            for j in map(int, sensors.varying)
            if sensors.terms[j].price_column is not None
        }
        decision = policy.acquire(read, prices=prices or None)
        same = (
            decision.label == answers[row]
            and decision.place == places[row]
            and np.isclose(decision.spent, costs[row], rtol=1e-9, atol=1e-12)
        )
        if not same:
            raise ModelFileError(
                f"the model contradicts itself on a made-up row: {answers[row]!r} for "
                f"{costs[row]:g} at once, {decision.label!r} for {decision.spent:g} step "
                f"by step; do not use it."
            )
    return n_rows


def made_up_rows(model: SavedModel, n_rows: int) -> NDArray[Any]:
    """Rows of numbers and categories such as training had, the same for every call."""
    rng = np.random.default_rng(0)
    categories = model.written_.categories
    seen = model.policy_.reader.seen_by_column
    columns: list[NDArray[Any]] = []
    for at, name in enumerate(model.sensors_.column_names):
        values: NDArray[Any] = np.abs(rng.normal(size=n_rows) * 3)
        before = seen.get(at)
        if before is not None and before.low is not None and before.high is not None:
            values = rng.uniform(before.low, before.high, size=n_rows)
        if name in categories:
            drawn = rng.integers(len(categories[name]), size=n_rows)
            values = np.array([categories[name][i] for i in drawn], dtype=object)
        columns.append(values)
    objects = any(values.dtype == object for values in columns)
    return np.stack([v.astype(object) if objects else v for v in columns], axis=1)
