"""`SensorParameters`: parameters of single sensors, as scikit-learn names nested ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from sklearn.base import clone

from sensortree.exceptions import ParameterError, SensorError
from sensortree.leaves.sklearn_private import ShallowTable
from sensortree.sensors.sensor import Sensor
from sensortree.text import listed

PREFIX = "sensors__"
OWN = tuple(field.name for field in fields(Sensor))
INNER = "transformer__"


class SensorParameters(ShallowTable):
    """Estimators whose declared sensors can be set one by one, and searched over.

    ``sensors__blood`` is the sensor, ``sensors__blood__cost`` one of its parameters, and
    ``sensors__blood__transformer__strategy`` one of its transformer's.
    """

    sensors: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters of this estimator.

        Parameters
        ----------
        deep : bool, default=True
            Whether to give those of sensors, transformers and classifiers too.

        Returns
        -------
        params : dict of str to value
        """
        # The estimator beside this class has it, which mypy cannot know.
        given: dict[str, Any] = super().get_params(deep)  # type: ignore[misc]  # a mixin
        if deep and isinstance(self.sensors, Mapping):
            own = parameters_of(self.sensors)
            given.update({f"{PREFIX}{name}": value for name, value in own.items()})
        return given

    def set_params(self, **params: Any) -> Any:
        """Set parameters of this estimator, of its sensors and of their transformers.

        Parameters
        ----------
        **params : dict of str to value
            What was declared is not written to: sensors and transformers are replaced by
            changed copies.

        Returns
        -------
        self
        """
        nested = {
            name.removeprefix(PREFIX): params.pop(name)
            for name in tuple(params)
            if name.startswith(PREFIX)
        }
        if nested:
            params["sensors"] = with_parameters(
                params.get("sensors", self.sensors), nested
            )
        # As in get_params.
        return super().set_params(**params)  # type: ignore[misc]  # a mixin


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
    """Sensors as declared, some parameters of some of them changed in copies.

    Parameters
    ----------
    sensors : mapping of name to `Sensor` or columns
    given : mapping of nested name to value
        Such as ``{"blood__cost": 3.0}``.
    """
    if not isinstance(sensors, Mapping):
        raise ParameterError(
            f"{PREFIX}{min(given)} is of a sensor, but none are declared by name; set "
            f"sensors={{'blood': Sensor([...])}} first."
        )
    changes: dict[str, dict[str, Any]] = {}
    for key, value in given.items():
        name = _sensor_of(key, sensors)
        changes.setdefault(name, {})[key[len(name) + 2 :]] = value
    return {
        name: _changed(name, sensor, changes[name]) if name in changes else sensor
        for name, sensor in sensors.items()
    }


def _sensor_of(key: str, sensors: Mapping[str, Any]) -> str:
    """Name of the sensor that a nested name begins with; names may hold "__" too."""
    names = [n for n in sensors if key == n or key.startswith(f"{n}__")]
    if not names:
        raise ParameterError(
            f"{PREFIX}{key} names {key.partition('__')[0]!r}, which is not a sensor; the "
            f"sensors are {listed(sensors)}."
        )
    return max(names, key=len)


def _changed(name: str, declared: Any, change: Mapping[str, Any]) -> Any:
    """One sensor with some parameters changed."""
    sensor = change.get("", declared)
    own = {key: value for key, value in change.items() if key in OWN}
    inner = {
        key.removeprefix(INNER): value
        for key, value in change.items()
        if key.startswith(INNER)
    }
    unknown = [key for key in change if key and key not in OWN]
    unknown = [key for key in unknown if not key.startswith(INNER)]
    if unknown:
        raise ParameterError(
            f"sensor {name!r} has no parameter {unknown[0]!r}; its parameters are "
            f"{', '.join(OWN)}, and {INNER}... for those of its transformer."
        )
    if not own and not inner:
        return sensor
    if not isinstance(sensor, Sensor):
        raise ParameterError(
            f"sensor {name!r} is declared by its columns alone, so it has no parameter "
            f"{min([*own, *inner])!r}; declare it as Sensor([...]), or set its price in "
            f"costs."
        )
    try:
        sensor = replace(sensor, **own)
    except SensorError as error:
        raise SensorError(f"sensor {name!r}: {error}") from error
    if not inner:
        return sensor
    return replace(sensor, transformer=_set(name, sensor.transformer, inner))


def _set(name: str, transformer: Any, parameters: Mapping[str, Any]) -> Any:
    """A copy of a sensor's transformer with some parameters changed."""
    if transformer is None:
        raise ParameterError(
            f"sensor {name!r} has no transformer, so it has no parameter "
            f"'{INNER}{min(parameters)}'; give it one first: "
            f"{PREFIX}{name}__transformer=..."
        )
    try:
        return clone(transformer).set_params(**parameters)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"the transformer of sensor {name!r} cannot be given "
            f"{listed(sorted(parameters))}: {error}"
        ) from error
