"""Claims about how numbers are said."""

from __future__ import annotations

import numpy as np
import pytest

from sensortree.text import chance_words, frequency_words, reading_words


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "none"),
        (0.0004, "fewer than one in a thousand"),
        (1 / 41, "one in 40"),
        (1 / 18, "one in 18"),
        (0.1, "one in ten"),
        (0.21, "one in five"),
        (141 / 454, "three in ten"),
        (0.49, "one in two"),
        (0.9, "nine in ten"),
        (0.99, "nearly all"),
        (1.0, "all"),
    ],
)
def test_a_share_is_said_as_one_speaks_of_it(share, words):
    assert frequency_words(share) == words


def test_no_share_is_said_as_another_that_is_far_from_it():
    numbers = {"nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
    for share in np.linspace(0.0011, 1 / 8.5, 500, endpoint=False):
        said = frequency_words(share).removeprefix("one in ")
        assert 1 / float(numbers.get(said, said)) == pytest.approx(share, rel=0.13)


def test_what_is_not_certain_is_not_said_to_be():
    assert [chance_words(p) for p in (0, 0.004, 0.384, 0.997, 1)] == [
        "0 %",
        "< 1 %",
        "38 %",
        "> 99 %",
        "100 %",
    ]


def test_a_value_is_said_with_its_column():
    assert reading_words("smoking", "former") == "smoking = former"
    assert reading_words("age", 63.0) == "age = 63"
    assert reading_words("crp", np.float64(0.30000001)) == "crp = 0.3"
    assert reading_words("rows", 1234567) == "rows = 1234567"
    assert reading_words("seen", np.True_) == "seen = True"
    assert reading_words("age", float("nan")) == "age is missing"
    assert reading_words("age", None) == "age is missing"
