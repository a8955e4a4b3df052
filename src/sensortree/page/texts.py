"""The words of the page, by language: one table, to which others can be added."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from sensortree.exceptions import ParameterError

Texts = dict[str, dict[str, str]]

FALLBACK = "en"  # where the browser speaks none of the languages
GAP = re.compile(r"\{\w+\}")  # what is filled in, as {price}


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
