"""Counts and times, in the text that Prometheus reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from threading import Lock
from typing import Any

# Seconds up to which requests are counted.
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Values of one name: labels, and the value with these labels.
Samples = Iterable[tuple[dict[str, str], float]]


class Requests:
    """Requests that were answered: how many, how, and how fast."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._count: dict[tuple[str, str, int], int] = defaultdict(int)
        self._within: dict[tuple[str, str], list[int]] = {}
        self._seconds: dict[tuple[str, str], float] = defaultdict(float)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; `route` is the pattern of its path, never the path."""
        with self._lock:
            self._count[method, route, status] += 1
            within = self._within.setdefault((method, route), [0] * (len(BUCKETS) + 1))
            for at, limit in enumerate((*BUCKETS, float("inf"))):
                within[at] += seconds <= limit
            self._seconds[method, route] += seconds

    def text(self) -> str:
        """All of it for Prometheus."""
        with self._lock:
            counts = [
                ({"method": m, "route": r, "status": str(s)}, float(n))
                for (m, r, s), n in sorted(self._count.items())
            ]
            lines = [family("sensortree_requests_total", "counter", counts)]
            name = "sensortree_request_seconds"
            lines.append(f"# TYPE {name} histogram\n")
            for (method, route), within in sorted(self._within.items()):
                labels = {"method": method, "route": route}
                for limit, n in zip((*map(str, BUCKETS), "+Inf"), within, strict=True):
                    lines.append(sample(f"{name}_bucket", {**labels, "le": limit}, n))
                seconds = self._seconds[method, route]
                lines.append(sample(f"{name}_sum", labels, seconds))
                lines.append(sample(f"{name}_count", labels, within[-1]))
        return "".join(lines)


def family(name: str, kind: str, samples: Samples) -> str:
    """All values of one name."""
    lines = [sample(name, labels, value) for labels, value in samples]
    return "".join([f"# TYPE {name} {kind}\n", *lines])


def sample(name: str, labels: dict[str, str], value: float) -> str:
    """One value on its line."""
    said = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{said}}} {value:.17g}\n" if said else f"{name} {value:.17g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def watch_text(watched: Iterable[tuple[str, str, dict[str, Any]]]) -> str:
    """What was seen of models in use: their names, versions and summaries."""
    families: dict[tuple[str, str], list[tuple[dict[str, str], float]]] = defaultdict(
        list
    )
    for name, version, seen in watched:
        of = {"model": name, "version": version[:12]}
        families["sensortree_decided_total", "counter"].append((of, seen["decided"]))
        families["sensortree_compared_total", "counter"].append((of, seen["compared"]))
        families["sensortree_spent_total", "counter"].append((of, seen["spent"]))
        for key in ("bought", "unavailable", "unseen"):
            families[f"sensortree_{key}_total", "counter"].extend(
                ({**of, "sensor": sensor}, n) for sensor, n in seen[key].items()
            )
        families["sensortree_answers_total", "counter"].extend(
            ({**of, "answer": answer}, n) for answer, n in seen["answers"].items()
        )
        for one in seen["quantities"]:
            what = {**of, "quantity": one["quantity"]}
            for key in ("training", "observed", "evidence"):
                value = one[key]
                if value is not None:
                    families[f"sensortree_drift_{key}", "gauge"].append((what, value))
            alarm = float(one["alarm"] is not None)
            families["sensortree_drift_alarm", "gauge"].append((what, alarm))
    return "".join(family(name, kind, s) for (name, kind), s in families.items())
