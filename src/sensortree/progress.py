"""`TextProgress`: how far a fit has come, in lines on stderr."""

from __future__ import annotations

import sys
import time


class TextProgress:
    """The steps of one fit, one line each on stderr if the user wants them.

    Parameters
    ----------
    verbose : bool
    at_most : int, default=None
        Steps that there can be, where that is known.
    """

    def __init__(self, verbose: bool, at_most: int | None = None):
        self.verbose, self.started = verbose, time.monotonic()
        self.at_most, self.done = at_most, 0
        self.stopped = False

    def step(self, name: str, detail: str = "") -> None:
        """Say that a step has ended, and what is left if all steps are taken."""
        self.done += 1
        if self.verbose:
            seconds = time.monotonic() - self.started
            said = f"{name}: {detail}" if detail else name
            if self.at_most is not None and self.done < self.at_most:
                left = seconds / self.done * (self.at_most - self.done)
                said += (
                    f" (step {self.done} of at most {self.at_most}, {left:.0f} s left)"
                )
            sys.stderr.write(f"[sensortree] {seconds:7.1f} s  {said}\n")
