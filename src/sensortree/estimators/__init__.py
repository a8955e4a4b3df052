"""The scikit-learn face of the package."""

from sensortree.estimators.alternating import AlternatingTreeClassifier
from sensortree.estimators.search import StructureReport
from sensortree.estimators.sensor_tree import DecisionReport, SensorTreeClassifier

__all__ = [
    "AlternatingTreeClassifier",
    "DecisionReport",
    "SensorTreeClassifier",
    "StructureReport",
]
