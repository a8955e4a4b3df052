"""The scikit-learn face of the package."""

from sensortree.estimators.sensor_tree import SensorTreeClassifier

__all__ = ["SensorTreeClassifier"]
