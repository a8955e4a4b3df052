"""The models that a service asks, by name and version."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sensortree.exceptions import ModelFileError, ParameterError
from sensortree.persistence import load
from sensortree.persistence.saved import SavedModel
from sensortree.policy.policy import Policy
from sensortree.service.watch import Reference, reference_of

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
SHORT = 12  # digits of a version that are shown


@dataclass(frozen=True, eq=False)
class Model:
    """One version of a model.

    Attributes
    ----------
    name : str
        What it is called in addresses.
    saved : SavedModel
    version : str
        Digest of all that its answers depend on.
    """

    name: str
    saved: SavedModel
    version: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "version", self.saved.policy_.digest)

    @property
    def policy(self) -> Policy:
        """What answers."""
        return self.saved.policy_

    def prepare(self) -> None:
        """Work out what the first who asks would else have to wait for."""
        _ = self.reference, self.policy.places, self.policy.around

    @cached_property
    def reference(self) -> Reference:
        """What training leads one to expect of its use."""
        return reference_of(self.policy)

    def as_written(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Values by sensor, as people write them, as sessions want them."""
        return {s: self.saved.as_written(s, values) for s, values in known.items()}

    def card(self) -> dict[str, Any]:
        """What the model is about, as plain values for JSON."""
        policy, about = self.policy, self.policy.about
        sensors, held_out = policy.sensors, about.held_out
        return {
            "name": self.name,
            "version": self.version,
            "target": about.target,
            "unit": about.unit,
            "fitted": about.fitted,
            "rows": about.rows,
            "classes": [str(label) for label in policy.classes.tolist()],
            "held_out": None if held_out is None else vars(held_out),
            "max_cost": policy.max_cost,
            "sensors": [
                {
                    "name": name,
                    "columns": list(policy.columns_of[name]),
                    "cost": float(cost),
                    "price_differs": position in sensors.varying,
                }
                for position, (name, cost) in enumerate(
                    zip(sensors.names, sensors.costs, strict=True)
                )
            ],
        }


class Shelf:
    """All models; of those with one name the last given is what new sessions get.

    Parameters
    ----------
    models : iterable of Model
    """

    def __init__(self, models: Iterable[Model]):
        self.models = tuple(models)
        if not self.models:
            raise ParameterError("there is no model to serve; name a model file.")
        self._by_version = {model.version: model for model in self.models}

    @property
    def current(self) -> tuple[Model, ...]:
        """The last of each name, in the order of the names."""
        last = {model.name: model for model in self.models}
        return tuple(last[name] for name in sorted(last))

    def find(self, wanted: str) -> Model | None:
        """A model by its name, or by name@version, of which eight digits are enough."""
        name, _, version = wanted.partition("@")
        for model in reversed(self.models):
            if model.name != name:
                continue
            if not version or (len(version) >= 8 and model.version.startswith(version)):
                return model
        return None

    def of_version(self, version: str) -> Model | None:
        """The model that a session was begun with."""
        return self._by_version.get(version)


def open_shelf(given: Iterable[str]) -> Shelf:
    """Load models that are given as FILE or NAME=FILE."""
    models = []
    for text in given:
        name, named, path = text.rpartition("=")
        name = name if named else Path(path).stem
        if not NAME.fullmatch(name):
            raise ParameterError(
                f"{name!r} cannot be a name in an address; write {text!r} as NAME=FILE, "
                f"with letters, digits, '-', '_' and '.' in the name."
            )
        try:
            models.append(Model(name, load(path)))
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from error
        if models[-1].policy.loss.numbers:
            raise ParameterError(
                f"{path} answers with numbers, and the service serves models of classes; "
                f"ask it with sensortree.load({path!r}).policy_.session() in Python."
            )
    return Shelf(models)
