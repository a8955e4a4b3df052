"""The scikit-learn face of the package."""

from sensortree.estimators.alternating import AlternatingTreeClassifier
from sensortree.estimators.astc import ASTCClassifier
from sensortree.estimators.cascade import CascadeClassifier
from sensortree.estimators.cstc import CSTCClassifier
from sensortree.estimators.myopic import MyopicClassifier
from sensortree.estimators.sensor_tree import SensorTreeClassifier
from sensortree.estimators.sensor_tree_regressor import SensorTreeRegressor
from sensortree.estimators.static import StaticSubsetClassifier
from sensortree.estimators.static_regressor import StaticSubsetRegressor
from sensortree.learning.joint import DecisionReport
from sensortree.structure.search import StructureReport

__all__ = [
    "ASTCClassifier",
    "AlternatingTreeClassifier",
    "CSTCClassifier",
    "CascadeClassifier",
    "DecisionReport",
    "MyopicClassifier",
    "SensorTreeClassifier",
    "SensorTreeRegressor",
    "StaticSubsetClassifier",
    "StaticSubsetRegressor",
    "StructureReport",
]
