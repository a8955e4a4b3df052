"""`to_page`: a model as one HTML file that asks, in any browser, without a network.

Its words stand in texts.json, by language; you can add others.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files
from typing import Any

from sensortree.exceptions import ModelFileError, ParameterError
from sensortree.page.questions import check_runnable, only_python, questions
from sensortree.persistence.files import render
from sensortree.persistence.model import write_model
from sensortree.policy.policy import Policy

Texts = dict[str, dict[str, str]]

FALLBACK = "en"  # where the browser speaks none of the languages
GAP = re.compile(r"\{\w+\}")  # what is filled in, as {price}
SCRIPTS = ("runtime.js", "picture.js", "page.js")
# Nothing may be fetched, sent or framed; only this script and this style are run.
FORBID = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; "
    "form-action 'none'"
)


def to_page(
    model: Any,
    *,
    title: str | None = None,
    language: str | None = None,
    texts: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Give one HTML page that asks for the sensors of a model and answers as it does.

    The page holds the model and all that is needed to run it. It loads nothing, sends
    nothing, and works from a disk. Route, answer and cost are those of Python.

    Parameters
    ----------
    model : fitted classifier of sensortree, `Policy` or `SavedModel`
    title : str, default=None
        What stands at the top; by default what the model predicts, where it knows that.
    language : str, default=None
        "en", "de" or one of `texts`; by default the one that the browser prefers.
    texts : mapping of language to texts, default=None
        Other languages, each with every key of ``sensortree/page/texts.json``.

    Returns
    -------
    html : str

    Raises
    ------
    ModelFileError
        If the model holds classifiers or transformers that only Python can run.

    Examples
    --------
    >>> import numpy as np
    >>> import sensortree
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = sensortree.SensorTreeClassifier().fit(X, X[:, 0] > 0)
    >>> html = sensortree.to_page(model, title="Above zero?")
    >>> html.startswith("<!DOCTYPE html>"), "<title>Above zero?</title>" in html
    (True, True)
    """
    table = with_others(texts)
    check_language(language, table)
    document = {**_document(model), "baselines": None}  # no answer depends on them
    check_runnable(document)
    policy = model if isinstance(model, Policy) else model.policy_
    about = document.get("about") or {}
    page = {
        "fingerprint": policy.digest,
        "title": title,
        "target": about.get("target"),
        "unit": about.get("unit"),
        "unequal": policy.loss.matrix is not None and policy.loss.per_mistake is None,
        "language": language,
        "texts": table,
        "questions": questions(document),
    }
    script = "".join(without_comments(_part(name)) for name in SCRIPTS)
    style = _part("page.css")
    forbid = FORBID.format(script=_hash(script), style=_hash(style))
    heading = title or about.get("target") or table[language or "en"]["title"]
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(language or "en")}">\n<head>\n'
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{forbid}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(heading)}</title>\n<style>{style}</style>\n</head>\n<body>\n"
        f"<noscript>{escape(table[language or 'en']['noscript'])}</noscript>\n"
        f"{_data('model', render(document).decode())}{_data('page', json.dumps(page))}"
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def _document(model: Any) -> dict[str, Any]:
    """The model file, of plain numbers and text only."""
    try:
        return write_model(model, None)
    except ModelFileError as error:
        what, foreign, _ = str(error).partition(", which a model file cannot hold")
        raise (only_python(what) if foreign else error) from error


def without_comments(script: str) -> str:
    """A script without indentation, empty lines and lines that are a comment.

    No text of our scripts runs over the end of a line, so that nothing else is lost.
    """
    lines = [line.strip() for line in script.splitlines()]
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("//"))


def _part(name: str) -> str:
    return files("sensortree.page").joinpath(name).read_text(encoding="utf-8")


def _data(name: str, text: str) -> str:
    """JSON in ASCII as an element; nothing in it can end the element or begin another."""
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="{name}">{safe}</script>\n'


def _hash(text: str) -> str:
    """The name by which a content security policy allows a text."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def own_texts() -> Texts:
    """The table of this package: English and German."""
    table: Texts = json.loads(
        files("sensortree.page").joinpath("texts.json").read_text(encoding="utf-8")
    )
    return table


def with_others(others: Mapping[str, Any] | None) -> Texts:
    """The table with other languages in it, each as complete as the English texts.

    Parameters
    ----------
    others : mapping of language to mapping of key to text, or None
    """
    table = own_texts()
    for language, texts in (others or {}).items():
        _check(language, texts, table[FALLBACK])
        table[language] = dict(texts)
    return table


def check_language(language: str | None, table: Texts) -> str | None:
    """A language that the table has; None for the browser's."""
    if language is not None and language not in table:
        raise ParameterError(
            f"there are no texts in the language {language!r}; there are "
            f"{', '.join(table)}, and others can be given as texts."
        )
    return language


def _check(language: Any, texts: Any, english: Mapping[str, str]) -> None:
    """Refuse a language that lacks a text, or a text that lacks what is filled in."""
    if not isinstance(language, str) or not isinstance(texts, Mapping):
        raise ParameterError(
            'texts must map a language to its texts, as {"fr": {"title": "..."}}.'
        )
    for key, text in english.items():
        if not isinstance(texts.get(key), str):
            raise ParameterError(
                f"the language {language!r} has no text {key!r}; in English it is "
                f"{text!r}."
            )
        lost = set(GAP.findall(text)) ^ set(GAP.findall(texts[key]))
        if lost:
            raise ParameterError(
                f"text {key!r} of the language {language!r} must fill in "
                f"{', '.join(sorted(set(GAP.findall(text)))) or 'nothing'}, as the "
                f"English {text!r} does."
            )
    odd = [key for key in texts if key not in english]
    if odd:
        raise ParameterError(
            f"the language {language!r} has a text {odd[0]!r} that the page has no place "
            f"for; leave it out."
        )
