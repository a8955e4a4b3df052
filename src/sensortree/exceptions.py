"""The exceptions and the warnings of the package.

Every exception is a `SensorTreeError`, and also the built-in exception that fits, so that
``except ValueError`` keeps working.
"""


class SensorTreeError(Exception):
    """Base of every exception this package raises on purpose."""


class SensorError(SensorTreeError, ValueError):
    """A sensor declaration or a price that cannot be."""


class TreeError(SensorTreeError, ValueError):
    """A tree that cannot be, or that does not fit the sensors."""


class ParameterError(SensorTreeError, ValueError):
    """An estimator parameter out of its range."""


class DataError(SensorTreeError, ValueError):
    """Data (X, y or sample weights) that cannot be used."""


class ProblemError(SensorTreeError, ValueError):
    """A surrogate problem that cannot be."""


class SessionError(SensorTreeError, ValueError):
    """A session that is told or asked what cannot be."""


class ModelFileError(SensorTreeError, ValueError):
    """A model file that cannot be read, or a model that cannot be written to one."""


class SolverError(SensorTreeError, RuntimeError):
    """A solver ended without an answer."""


class OracleError(SensorTreeError, RuntimeError):
    """An oracle that fails again and again, or answers what it was not asked."""


class StorageError(SensorTreeError, RuntimeError):
    """A database, of the service or of a run, that cannot be read or written.

    Attributes
    ----------
    code : str
        SQLite's name of what is wrong, such as "SQLITE_FULL"; "" if it has none.
    """

    def __init__(self, message: str, code: str = ""):
        super().__init__(message)
        self.code = code


class MissingDependencyError(SensorTreeError, ImportError):
    """An optional package is needed and not installed."""


class CertificateWarning(UserWarning):
    """The certified gap is larger than the tolerance that was asked for."""


class FewRowsWarning(UserWarning):
    """A class has too few rows to hold any of them out."""


class WideBasisWarning(UserWarning):
    """A sensor subset has too many columns for all products of two of them."""


class PriceWarning(UserWarning):
    """Sensors are too dear to ever pay, or a model buys nothing at all."""


class BudgetWarning(UserWarning):
    """No point of a trade-off curve meets the budget or the error asked for."""


class UnseenWarning(UserWarning):
    """Values that training never saw: a new text, a number far away, a first gap."""
