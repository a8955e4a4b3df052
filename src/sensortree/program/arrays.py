"""Array namespaces: NumPy, or the library whose arrays a problem holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from sensortree.exceptions import MissingDependencyError

Array = Any  # an array of the problem's own library


def namespace(array: Array) -> Any:
    """Give the module whose functions work on an array."""
    if isinstance(array, np.ndarray):
        return np
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    try:
        from array_api_compat import array_namespace
    except ImportError as error:
        raise MissingDependencyError(
            f"arrays of type {type(array).__module__}.{type(array).__name__} need "
            f"array-api-compat; run pip install 'sensortree[gpu]'."
        ) from error
    return array_namespace(array)


def is_foreign(value: object) -> bool:
    """Whether a value is an array of a library other than NumPy."""
    foreign = hasattr(value, "__array_namespace__") or hasattr(value, "__dlpack__")
    return foreign and not isinstance(value, np.ndarray)


def as_floats(value: Any) -> Array:
    """Give floats: foreign arrays in their own library, all else as NumPy float64."""
    if not is_foreign(value):
        return np.asarray(value, dtype=np.float64)
    xp = namespace(value)
    return value if value.dtype == xp.float64 else astype(value, xp.float64)


def astype(array: Array, dtype: Any) -> Array:
    """Copy an array to another kind of number; NumPy 2.0 has no such function."""
    if isinstance(array, np.ndarray):
        return array.astype(dtype)
    return namespace(array).astype(array, dtype)


def to_numpy(array: Array) -> np.ndarray[Any, Any]:
    """Copy an array to NumPy, from whatever device it is on."""
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "cpu"):  # PyTorch
        array = array.cpu()
    elif hasattr(array, "get"):  # CuPy
        array = array.get()
    return np.from_dlpack(array)


def numbers(*values: Array) -> np.ndarray[Any, Any]:
    """Read some scalars, all at once: each read waits for the device."""
    if all(isinstance(value, float) for value in values):
        return np.array(values)
    return to_numpy(namespace(values[0]).stack(values))


def like(value: Any, array: Array) -> Array:
    """Bring a NumPy value to the library and the device of an array."""
    if isinstance(array, np.ndarray):
        return np.asarray(value)
    return namespace(array).asarray(value, device=array.device)


def on_device_of(array: Array) -> dict[str, Any]:
    """Keyword that makes a new array where an array is; NumPy needs none."""
    return {} if isinstance(array, np.ndarray) else {"device": array.device}
