"""The scikit-learn face of the package.

::

    sensor_tree  decisions by one linear program: `SensorTreeClassifier` and others
    base         what all methods share; a method fills `_learn`
    parameters   parameters, declared once; `Program`; nested ones, and those renamed
    prediction   what a fitted estimator answers about rows, after X was checked
    validation   X, y and weights against the sensors: data to training rows

The methods that it is compared with are in `baselines`.
"""

from sensortree.estimators.parameters import Program
from sensortree.estimators.sensor_tree import (
    CascadeClassifier,
    SensorTreeClassifier,
    SensorTreeRegressor,
)

__all__ = [
    "CascadeClassifier",
    "Program",
    "SensorTreeClassifier",
    "SensorTreeRegressor",
]
