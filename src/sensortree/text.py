"""Words and numbers as messages, reports and the command line show them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def listed(names: Iterable[str]) -> str:
    """Show some names in a message."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:8]) + (", ..." if len(shown) > 8 else "")


def aligned(
    head: Sequence[str], lines: Sequence[Sequence[str]], last: str = "right"
) -> str:
    """Lines of text in columns, the first to the left, the others to the right."""
    table = [head, *lines]
    widths = [max(len(line[i]) for line in table) for i in range(len(head))]
    written = []
    for line in table:
        cells = [line[0].ljust(widths[0])]
        cells += [c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True)]
        if last == "left":
            cells[-1] = line[-1]
        written.append("  ".join(cells).rstrip())
    return "\n".join(written)


def plain(value: Any) -> Any:
    """Bring a value to what JSON can say; keys become text, NaN null, the rest text."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (set, frozenset)):
        return sorted(map(plain, value))
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if hasattr(value, "tolist"):  # an array, or one number of it
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return str(value)  # a date, say
