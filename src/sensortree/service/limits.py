"""How much may be sent, kept and asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sensortree.exceptions import ParameterError


@dataclass(frozen=True)
class Limits:
    """What a service takes.

    Attributes
    ----------
    body : int
        Bytes of a request.
    rows : int
        Rows of a batch.
    sessions : int
        Sessions that a tenant may have at a time.
    rate : float
        Requests a second of each token, over time.
    burst : int
        Requests of each token that may come at once.
    """

    body: int = 1 << 20
    rows: int = 1_000
    sessions: int = 100_000
    rate: float = 1_000.0
    burst: int = 2_000

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ParameterError(
                    f"the limit of {name} must be above 0, got {value}."
                )


class Bucket:
    """A bucket of permits that fills steadily: the rate of one token.

    Parameters
    ----------
    rate : float
        Permits a second.
    size : float
        Permits that it holds.
    clock : callable, default=time.monotonic
    """

    def __init__(
        self, rate: float, size: float, clock: Callable[[], float] = time.monotonic
    ):
        self._rate, self._size, self._clock = rate, float(size), clock
        self._held, self._at = float(size), clock()

    def wait(self) -> float:
        """Take a permit: 0 if there was one, else the seconds until there is."""
        now = self._clock()
        self._held = min(self._size, self._held + (now - self._at) * self._rate)
        self._at = now
        if self._held >= 1:
            self._held -= 1
            return 0.0
        return (1 - self._held) / self._rate
