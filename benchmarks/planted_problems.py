"""The planted problems: small questionnaires and inspections whose answer is known.

Each function makes a `Population`, and its docstring says what is hard about it. Where
classes follow from codes they are flipped in 5 of 100 rows unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.population import Population, Shown, independent, witnesses

PROBLEMS: dict[str, Callable[[], Population]] = {}
JITTER = 0.05
WINDS = ("north", "east", "south", "west", "calm")
MONTHS = tuple(f"month {number}" for number in range(1, 13))


def planted(make: Callable[[], Population]) -> Callable[[], Population]:
    """Enter a problem into the list, by the name of its function."""
    PROBLEMS[make.__name__.replace("_", "-")] = make
    return make


def words(name: str, price: float, texts: Sequence[str], **terms: Any) -> Shown:
    """A sensor that shows text."""
    return Shown(name, price, [[text] for text in texts], **terms)


def numbers(name: str, price: float, n_codes: int, **terms: Any) -> Shown:
    """A sensor that shows a number from 0."""
    return Shown(name, price, [[float(code)] for code in range(n_codes)], **terms)


def bit(name: str, price: float, **terms: Any) -> Shown:
    """A sensor that shows 0 or 1."""
    return numbers(name, price, 2, **terms)


def bits(letters: str, price: float, **terms: Any) -> list[Shown]:
    """A sensor of 0 and 1 for each letter."""
    return [bit(letter, price, **terms) for letter in letters]


def at(where: Any, *codes: Any) -> Any:
    """The code of the sensor that another one points to."""
    return np.choose(where, codes)


def right(share: float, n_codes: int = 2) -> Any:
    """What a sensor shows that is right this often, and else shows any other code."""
    wrong = (1 - share) / (n_codes - 1)
    return np.full((n_codes, n_codes), wrong) + (share - wrong) * np.eye(n_codes)


# What three or more sensors tell only together.


@planted
def xor() -> Population:
    """Two dear sensors that tell something only together; four useless ones."""
    return independent(bits("ab", 0.15), lambda a, b: a ^ b, n_noise=4)


@planted
def xor_among_twelve() -> Population:
    """The same among twelve useless sensors."""
    return independent(bits("ab", 0.15), lambda a, b: a ^ b, n_noise=12)


@planted
def xor_jittered() -> Population:
    """The same, read with a little noise."""
    return independent(bits("ab", 0.15, jitter=JITTER), lambda a, b: a ^ b, n_noise=4)


@planted
def parity() -> Population:
    """Parity of three sensors among six."""
    return independent(bits("abc", 0.06), lambda a, b, c: a ^ b ^ c, n_noise=3)


@planted
def sum_modulo_three() -> Population:
    """Three classes: the sum of two sensors of three levels, modulo 3."""
    sensors = [numbers("a", 0.1, 3), numbers("b", 0.1, 3)]
    return independent(sensors, lambda a, b: (a + b) % 3, n_classes=3, n_noise=3)


@planted
def columns_of_parity() -> Population:
    """Xor of two sensors of two columns each, which show parities themselves."""
    lines = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    sensors = [Shown("a", 0.12, lines), Shown("b", 0.12, lines), bit("c", 0.05)]
    return independent(sensors, lambda a, b, c: odd(a) ^ odd(b))


def odd(code: Any) -> Any:
    """Whether one of the two columns of a line shows 1."""
    return (code == 1) ^ (code == 2)


# One sensor that tells which others to buy.


@planted
def text_context() -> Population:
    """A text says which of five sensors to look at."""
    sensors = [words("wind", 0.06, WINDS), *bits("abcde", 0.1)]
    return independent(sensors, at)


@planted
def number_context() -> Population:
    """The same text as numbers 0 to 4."""
    return independent([numbers("code", 0.06, 5), *bits("abcde", 0.1)], at)


@planted
def jittered_context() -> Population:
    """The same numbers, read with a little noise."""
    sensors = [
        numbers("code", 0.06, 5, jitter=JITTER),
        *bits("abcde", 0.1, jitter=JITTER),
    ]
    return independent(sensors, at)


@planted
def shuffled_codes() -> Population:
    """A number from 0 to 7 that says which of two sensors, in no order."""
    to = np.array([0, 1, 1, 0, 1, 0, 0, 1])
    sensors = [numbers("code", 0.05, 8), *bits("ab", 0.14), bit("c", 0.14)]
    return independent(sensors, lambda code, a, b, c: at(to[code], a, b))


@planted
def months() -> Population:
    """Twelve texts, of which each season asks for another sensor."""
    sensors = [words("month", 0.04, MONTHS), *bits("wxyz", 0.12)]
    return independent(sensors, lambda month, *rest: at(((month + 1) % 12) // 3, *rest))


@planted
def columns_of_context() -> Population:
    """Three columns of one sensor say, as a binary number, which of four to look at."""
    lines = [[float(c >> 2 & 1), float(c >> 1 & 1), float(c & 1)] for c in range(8)]
    sensors = [Shown("form", 0.06, lines), *bits("abcd", 0.1)]
    return independent(sensors, lambda form, *rest: at(form // 2, *rest))


@planted
def context_of_four_classes() -> Population:
    """A text says which of three sensors shows the class, one of four."""
    sensors = [words("wind", 0.06, WINDS[:3]), *(numbers(s, 0.12, 4) for s in "abc")]
    return independent(sensors, at, n_classes=4)


@planted
def free_context() -> Population:
    """What is known for nothing says which of four dear sensors to buy."""
    sensors = [
        words("age", 0.0, ("child", "youth", "adult", "old")),
        *bits("abcd", 0.2),
    ]
    return independent(sensors, at)


@planted
def context_that_often_suffices() -> Population:
    """A text tells the class of half of the rows, and of the others which sensor to buy."""

    def truth(wind: Any, a: Any, b: Any, c: Any) -> Any:
        return at(wind, 0 * a, 0 * a + 1, a, b, c)

    shares = {"wind": (0.25, 0.25, 0.2, 0.2, 0.1)}
    sensors = [words("wind", 0.05, WINDS), *bits("abc", 0.12)]
    return independent(sensors, truth, shares=shares)


@planted
def context_of_a_context() -> Population:
    """A sensor says which of two says which of two sensors to look at."""

    def truth(first: Any, left: Any, right: Any, *rest: Any) -> Any:
        return at(2 * first + at(first, left, right), *rest)

    sensors = [bit("first", 0.03), *bits("lr", 0.03), *bits("abcd", 0.1)]
    return independent(sensors, truth)


@planted
def context_of_pairs() -> Population:
    """A text says which two of six sensors tell the class by their xor."""

    def truth(wind: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any) -> Any:
        return at(wind, a ^ b, c ^ d, e ^ f)

    return independent([words("wind", 0.04, WINDS[:3]), *bits("abcdef", 0.07)], truth)


@planted
def multiplexer() -> Population:
    """Two address sensors say together which of four to look at."""

    def truth(x: Any, y: Any, *rest: Any) -> Any:
        return at(2 * x + y, *rest)

    return independent([*bits("xy", 0.04), *bits("abcd", 0.04)], truth)


@planted
def multiplexer_of_texts() -> Population:
    """The same with texts for addresses and three levels in what they point to."""

    def truth(x: Any, y: Any, *rest: Any) -> Any:
        return at(2 * x + y, *rest)

    address = [words("x", 0.04, ("up", "down")), words("y", 0.04, ("left", "right"))]
    sensors = [*address, *(numbers(s, 0.06, 3) for s in "abcd")]
    return independent(sensors, truth, n_classes=3)


@planted
def multiplexer_jittered() -> Population:
    """The multiplexer, read with a little noise, and two useless sensors."""

    def truth(x: Any, y: Any, *rest: Any) -> Any:
        return at(2 * x + y, *rest)

    sensors = [*bits("xy", 0.04, jitter=JITTER), *bits("abcd", 0.04, jitter=JITTER)]
    return independent(sensors, truth, n_noise=2)


@planted
def conditional_xor() -> Population:
    """A cheap sensor tells whether one more is enough, or an xor of two is needed."""

    def truth(cheap: Any, a: Any, b: Any) -> Any:
        return np.where(cheap == 1, a ^ b, a)

    return independent([bit("cheap", 0.02), *bits("ab", 0.09)], truth)


@planted
def prerequisites() -> Population:
    """An examination says which of two scans; a biopsy is allowed after a scan only."""
    exam = numbers("exam", 0.03, 3)
    scans = [bit("scan", 0.08, after=("exam",)), bit("echo", 0.08, after=("exam",))]
    biopsy = bit("biopsy", 0.1, after=("scan",))

    def truth(exam: Any, scan: Any, echo: Any, biopsy: Any) -> Any:
        return at(exam, 0 * scan, echo, scan & biopsy)

    return independent([exam, *scans, biopsy], truth)


@planted
def blood_is_drawn_once() -> Population:
    """A complaint says which two of four tests; a needle is paid for once."""
    terms = {"group": "blood", "fee": 0.06}
    sensors = [
        words("pain", 0.03, ("none", "chest", "back")),
        *bits("abcd", 0.04, **terms),
    ]

    def truth(pain: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return at(pain, 0 * a, a & b, c ^ d)

    return independent(sensors, truth)


@planted
def unanswered() -> Population:
    """A question that a third leave open, and who does needs another sensor."""

    def truth(asked: Any, other: Any) -> Any:
        return np.where(asked == 2, other, asked)

    asked = Shown("asked", 0.05, [[0.0], [1.0], [float("nan")]])
    return independent([asked, bit("other", 0.18)], truth)


# Sequences: what is shown says whether to go on.


@planted
def unsure_then_exact() -> Population:
    """A cheap sensor of three levels, unsure in half of the rows, and a dear exact one."""
    cheap = [[0.48, 0.5, 0.02], [0.02, 0.5, 0.48]]
    return witnesses(
        [numbers("cheap", 0.02, 3), bit("dear", 0.16)],
        (0.5, 0.5),
        {"cheap": cheap, "dear": right(0.98)},
    )


@planted
def three_stages() -> Population:
    """Questions, a blood test and a scan, each surer and dearer than the one before."""
    unsure = [[0.5, 0.3, 0.19, 0.01], [0.01, 0.19, 0.3, 0.5]]
    test = [[0.7, 0.29, 0.01], [0.01, 0.29, 0.7]]
    return witnesses(
        [numbers("questions", 0.01, 4), numbers("blood", 0.05, 3), bit("scan", 0.18)],
        (0.6, 0.4),
        {"questions": unsure, "blood": test, "scan": right(0.99)},
    )


@planted
def either_is_positive() -> Population:
    """Or of five sensors: the first 1 ends it."""
    shares = dict.fromkeys("abcde", (0.75, 0.25))

    def truth(*codes: Any) -> Any:
        return np.any(codes, axis=0)

    return independent(bits("abcde", 0.04), truth, shares=shares)


@planted
def majority() -> Population:
    """Majority of five sensors, flipped in 2 of 100 rows."""

    def truth(*codes: Any) -> Any:
        return np.sum(codes, axis=0) > 2

    return independent(bits("abcde", 0.04), truth, flipped=0.02)


@planted
def equal_questions() -> Population:
    """Eight equal questions, each right in 75 of 100 rows."""
    says = {letter: right(0.75) for letter in "abcdefgh"}
    return witnesses(bits("abcdefgh", 0.015), (0.5, 0.5), says)


@planted
def halving() -> Population:
    """Eight classes, and a sensor for each border between them: three of seven suffice."""
    borders = np.arange(1, 8)
    names = [f"above {border}" for border in borders]
    says = {
        name: np.eye(2)[(np.arange(8) >= border).astype(int)]
        for name, border in zip(names, borders, strict=True)
    }
    return witnesses([bit(name, 0.06) for name in names], np.ones(8), says)


@planted
def faulty_part() -> Population:
    """One of five parts is broken, the first most often; each can be looked at."""
    parts = "abcde"
    broken = np.eye(5, dtype=int)
    says = {part: np.eye(2)[broken[j]] for j, part in enumerate(parts)}
    return witnesses(bits(parts, 0.07), (0.4, 0.25, 0.15, 0.12, 0.08), says)


@planted
def second_opinion() -> Population:
    """Two doctors who err alike; a third, dearer one is asked only where they differ."""
    found = ("well", "ill")
    doctors = {"first": 0.02, "second": 0.02, "third": 0.12}
    return witnesses(
        [words(name, price, found) for name, price in doctors.items()],
        (0.5, 0.5),
        {"first": right(0.85), "second": right(0.85), "third": right(0.95)},
    )


# Losses, rare classes, numbers in order.


@planted
def rare_disease() -> Population:
    """5 of 100 are ill, whom to miss costs ten times as much as a false alarm."""
    questions = [[0.7, 0.25, 0.05], [0.1, 0.3, 0.6]]
    return witnesses(
        [numbers("questions", 0.01, 3), bit("test", 0.08), bit("scan", 0.2)],
        (0.95, 0.05),
        {"questions": questions, "test": right(0.9), "scan": right(0.99)},
        loss=[[0, 1], [10, 0]],
    )


@planted
def rare_third_class() -> Population:
    """Of three classes one has 6 of 100 rows, and a sensor of its own."""

    def truth(sign: Any, a: Any, b: Any) -> Any:
        return np.where((sign == 2) & (b == 1), 2, a)

    shares = {"sign": (0.5, 0.38, 0.12)}
    sensors = [numbers("sign", 0.01, 3), bit("a", 0.1), bit("b", 0.12)]
    loss = [[0, 1, 1], [1, 0, 1], [4, 4, 0]]
    return independent(sensors, truth, 3, 0.02, shares, loss=loss)


@planted
def treatments() -> Population:
    """Three classes and a loss that is not symmetric; a text says which test tells more."""

    def truth(ward: Any, a: Any, b: Any) -> Any:
        return at(ward, a, b, np.minimum(a, b))

    sensors = [words("ward", 0.05, ("east", "west", "south"))]
    sensors += [numbers("a", 0.12, 3), numbers("b", 0.12, 3)]
    loss = [[0, 0.3, 1], [0.8, 0, 0.5], [2, 1, 0]]
    return independent(sensors, truth, 3, 0.06, loss=loss)


@planted
def additive() -> Population:
    """Whether four numbers from 0 to 3 sum to 5 or more; some of them often suffice."""

    def truth(*codes: Any) -> Any:
        return np.sum(codes, axis=0) > 4

    return independent([numbers(letter, 0.05, 4) for letter in "abcd"], truth)


@planted
def stages_in_order() -> Population:
    """Five stages in order, where an error costs its distance; a text says which scale."""

    def truth(kind: Any, a: Any, b: Any) -> Any:
        return at(kind, a, 4 - a, b)

    stages = np.arange(5)
    loss = np.abs(stages[:, None] - stages) / 2
    sensors = [words("kind", 0.05, ("old", "new", "other"))]
    sensors += [numbers("a", 0.15, 5), numbers("b", 0.15, 5)]
    return independent(sensors, truth, 5, 0.08, loss=loss)


# Where the best fixed set, or nothing, is the optimum.


@planted
def only_noise() -> Population:
    """Six sensors that tell nothing; 4 of 10 rows are of the one class."""
    return Population(
        (bit("a", 0.02),),
        np.array([[0], [1]]),
        np.array([0.5, 0.5]),
        np.array([[0.6, 0.4], [0.6, 0.4]]),
        n_noise=5,
    )


@planted
def too_dear() -> Population:
    """Each of four sensors tells a little, and less than it costs."""
    says = {letter: right(0.6) for letter in "abcd"}
    return witnesses(bits("abcd", 0.15), (0.5, 0.5), says)


@planted
def too_dear_together() -> Population:
    """An xor that costs more than it tells."""
    return independent(bits("ab", 0.25), lambda a, b: a ^ b, n_noise=2)


@planted
def one_of_many() -> Population:
    """One sensor tells all there is; eight tell nothing."""
    return independent([bit("a", 0.1)], lambda a: a, n_noise=8)


@planted
def both_are_needed() -> Population:
    """Four classes: two sensors tell half of it each, and nobody can do without one."""
    sensors = [*bits("ab", 0.1)]
    return independent(sensors, lambda a, b: 2 * a + b, n_classes=4, n_noise=2)


@planted
def copies() -> Population:
    """Three sensors that show the same, at different prices."""
    codes = np.array([[0, 0, 0], [1, 1, 1]])
    sure = np.array([[0.92, 0.08], [0.08, 0.92]])
    sensors = (bit("a", 0.09), bit("b", 0.06), bit("c", 0.12))
    return Population(sensors, codes, np.array([0.5, 0.5]), sure, n_noise=2)


@planted
def free_is_enough() -> Population:
    """A free text tells the class as well as the dear sensors beside it."""
    sensors = [words("form", 0.0, WINDS), bit("dear", 0.12)]
    says = {"form": [[0.44, 0.44, 0.04, 0.04, 0.04], [0.04, 0.04, 0.44, 0.44, 0.04]]}
    return witnesses(sensors, (0.5, 0.5), says | {"dear": right(0.6)})
