"""What a browser is shown: the page of a model, a list of them, the watch."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from html import escape
from typing import Any

from starlette.responses import HTMLResponse

from sensortree.exceptions import ModelFileError
from sensortree.page import to_page
from sensortree.service.shelf import SHORT, Model
from sensortree.service.watch import SPEND

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; padding: .5rem 0; }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
.alarm { font-weight: bold; color: light-dark(#a00000, #ff9d9d); }
.scroll { overflow-x: auto; }
"""


class HTML(HTMLResponse):
    """A page that loads and runs nothing of others.

    The page of a model says itself which script it runs.
    """

    def init_headers(self, headers: Any = None) -> None:
        """Forbid frames, and content that nobody declared."""
        super().init_headers(headers)
        self.headers["X-Frame-Options"] = "DENY"


@lru_cache(maxsize=32)
def of_model(model: Model) -> str:
    """The page that asks for the sensors of a model."""
    try:
        return to_page(model.saved)
    except ModelFileError as error:
        said = f"<p>{escape(str(error))}</p><p>The API answers at <code>/v1</code>.</p>"
        return _page(model.name, said)


def list_of(models: Iterable[Model]) -> str:
    """Links to the pages of models."""
    items = "".join(
        f'<li><a href="/models/{escape(model.name)}">{escape(model.name)}</a> '
        f"{escape(model.policy.about.target)}</li>"
        for model in models
    )
    return _page("Models", f"<ul>{items}</ul>")


def of_watch(seen: Iterable[tuple[Model, dict[str, Any]]]) -> str:
    """What was seen of models in use, beside their training."""
    return _page("Models in use", "".join(_watched(*each) for each in seen))


def _watched(model: Model, seen: dict[str, Any]) -> str:
    alarms = [one for one in seen["quantities"] if one["alarm"] is not None]
    said = (
        f'<p class="alarm" role="alert">{len(alarms)} of {len(seen["quantities"])} '
        "quantities are not as in training.</p>"
        if alarms
        else "<p>No alarm.</p>"
    )
    money = model.policy.about.money
    return (
        f"<h2>{escape(model.name)} <small>{model.version[:SHORT]}</small></h2>{said}"
        f"<p>{seen['decided']:,} sessions decided, {seen['compared']:,} compared with "
        f"training; {escape(money(seen['spent']))} spent.</p>"
        + _table(
            "Beside training",
            ("quantity", "in training", "between", "in use", "evidence", "alarm"),
            [_quantity(one) for one in seen["quantities"]],
        )
        + _table(
            "By sensor",
            ("sensor", "bought", "not to be had", "values never seen"),
            [
                (
                    (name, ""),
                    *((f"{seen[key].get(name, 0):,}", "") for key in COUNTS),
                )
                for name in model.policy.sensors.names
            ],
        )
    )


COUNTS = ("bought", "unavailable", "unseen")
Cell = tuple[str, str]  # text, class


def _quantity(one: dict[str, Any]) -> tuple[Cell, ...]:
    alarm = one["alarm"]
    is_rate = one["quantity"] != SPEND

    def said(number: float) -> str:
        return f"{number:.1%}" if is_rate else f"{number:.4g}"

    observed = "–" if one["observed"] is None else said(one["observed"])
    return (
        (one["quantity"], ""),
        (said(one["training"]), ""),
        (f"{said(one['low'])} – {said(one['high'])}", ""),
        (observed, ""),
        (f"{max(one['evidence'], 0):.0%}", ""),
        ("no", "")
        if alarm is None
        else (f"{one['direction']}, from session {alarm:,}", "alarm"),
    )


def _table(
    caption: str, head: tuple[str, ...], rows: Iterable[tuple[Cell, ...]]
) -> str:
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}">{escape(text)}</td>'
            if kind
            else f"<td>{escape(text)}</td>"
            for text, kind in row
        )
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0">'
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _page(title: str, body: str) -> str:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )
