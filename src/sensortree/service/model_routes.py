"""Routes that ask a model and keep nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from fastapi import FastAPI, Response
from fastapi.concurrency import run_in_threadpool

from sensortree.exceptions import SensorTreeError
from sensortree.persistence.saved import SavedModel
from sensortree.service import schemas
from sensortree.service.problems import (
    RefusedError,
)
from sensortree.service.service import (
    ANY,
    Asker,
    Reader,
    Service,
    answered,
    described,
)
from sensortree.text import listed as named
from sensortree.text import plain


def add_models(app: FastAPI, service: Service) -> None:
    """Add the routes that keep nothing: models, steps, answers, explanations."""
    refusals = described(ANY)

    @app.get("/v1/models", response_model=schemas.Models, responses=refusals)
    async def list_models(caller: Reader) -> Response:
        """List the models, the current version of each."""
        cards = [model.card() for model in service.shelf.current]
        return answered({"models": cards})

    @app.get("/v1/models/{model}", response_model=schemas.ModelCard, responses=refusals)
    async def model_card(name: schemas.ModelName, caller: Reader) -> Response:
        """Give what a model is about: sensors, prices, classes, held-out score."""
        return answered(plain(service.model(name).card()))

    @app.post(
        "/v1/models/{model}/step", response_model=schemas.StepReply, responses=refusals
    )
    async def step(
        name: schemas.ModelName, wanted: schemas.StepRequest, caller: Asker
    ) -> Response:
        """Say what to do next by what is known; nothing is kept."""
        model = service.model(name)
        policy = model.policy
        found = policy.step(
            model.as_written(wanted.known),
            unavailable=wanted.unavailable,
            limit=wanted.limit,
            prices=wanted.prices,
            free=wanted.free,
        )
        said = found.to_dict()
        decision = None
        if found.sensor is None:
            label = policy.classes[policy.loss.answer(found.proba[None])[0]]
            decision = {
                "label": plain(label),
                "proba": said["proba"],
                "spent": found.spent,
                "referred": found.referred,
            }
        return answered({"step": said, "decision": decision})

    @app.post(
        "/v1/models/{model}/answers", response_model=schemas.Answers, responses=refusals
    )
    async def answers(
        name: schemas.ModelName, wanted: schemas.AnswersRequest, caller: Asker
    ) -> Response:
        """Answer whole rows with what the model buys of each; nothing is kept."""
        if len(wanted.rows) > service.limits.rows:
            said = f"more than {service.limits.rows:,} rows; send fewer at a time."
            raise RefusedError(422, "rows", said)
        saved = service.model(name).saved
        found = await run_in_threadpool(
            lambda: [_answer(saved, *row) for row in enumerate(wanted.rows)]
        )
        return answered({"answers": found})

    @app.post(
        "/v1/models/{model}/explanation",
        response_model=dict[str, Any],
        responses=refusals,
    )
    async def explanation(
        name: schemas.ModelName, wanted: schemas.ExplanationRequest, caller: Asker
    ) -> Response:
        """Explain the way of one row: every node, what decided, what it cost."""
        saved = service.model(name).saved
        columns = saved.sensors_.column_names
        _check_columns(wanted.values, columns)
        values = saved.written_.of_columns(wanted.values)
        row = [values.get(column) for column in columns]
        filled = np.array([np.nan if v is None else v for v in row], dtype=object)
        found = await run_in_threadpool(saved.explain, filled)
        return answered(plain(found.to_dict()))


def _check_columns(values: dict[str, Any], columns: tuple[str, ...]) -> None:
    for column in values:
        if column not in columns:
            raise RefusedError(
                422,
                "values",
                f"{column!r} is no column of the model; it reads {named(columns)}.",
            )


def _answer(saved: SavedModel, number: int, row: schemas.Example) -> dict[str, Any]:
    """Buy what the model asks for of a row that is there, and decide."""
    policy = saved.policy_
    _check_columns(row.values, policy.sensors.column_names)

    def look_up(sensor: str, columns: tuple[str, ...]) -> Any:
        if not any(column in row.values for column in columns):
            return None  # cannot be had
        told = {column: row.values.get(column) for column in columns}
        return saved.as_written(sensor, told)

    try:
        return policy.acquire(look_up, limit=row.limit, prices=row.prices).to_dict()
    except SensorTreeError as error:
        raise RefusedError(422, "values", f"row {number}: {error}") from error
