"""The page in Chromium: its answers, every button, keys, looks, axe-core."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import models
import numpy as np
import pytest
from chromium import Chromium, find_chromium
from conftest import data_folder
from node import python_rows, told_rows
from test_javascript import REAL, differences, real

import sensortree
from sensortree import Sensor, SensorTreeClassifier
from sensortree.cells.words import ColumnFormat, day_of

ROOT = Path(__file__).parents[1]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
SIZES = {"phone": (390, 844), "desk": (1280, 900)}

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        find_chromium() is None,
        reason="no Chromium: it is not installed; `make browser` installs it",
    ),
]
needs_axe = pytest.mark.skipif(
    not AXE.is_file(),
    reason="no axe-core: it is not in node_modules; `make browser` installs it",
)


@pytest.fixture(scope="module")
def browser():
    path = find_chromium()
    assert path is not None
    with Chromium(path) as chromium:
        yield chromium


def clinic() -> Any:
    """Three sensors with text, numbers and missing values."""
    return models.fitted("low prices")[0]


@pytest.fixture
def page(browser, tmp_path):
    """Open the page of a model; every test ends without an error in the console."""

    def open_page(model: Any, **how: Any) -> Chromium:
        path = tmp_path / "page.html"
        path.write_text(sensortree.to_page(model, **how), encoding="utf-8")
        browser.events.clear()
        browser.look(*SIZES["desk"], dark=False)
        browser.open(path)
        browser.wait("document.querySelector('main h2')")
        return browser

    yield open_page
    browser.run("0")  # brings the last events
    bad = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled")
    assert [e for e in browser.events if e.get("method") in bad] == []
    asked = [
        e["params"]["request"]["url"]
        for e in browser.events
        if e.get("method") == "Network.requestWillBeSent"
    ]
    # The browser draws its own date fields with a picture that it has at hand.
    asked = [url for url in asked if not url.startswith("data:image/svg+xml;base64,")]
    assert all(url.startswith("file:") and url.endswith("page.html") for url in asked)


def heading(page: Chromium) -> str:
    return str(page.run("document.querySelector('main h2').textContent"))


def text(page: Chromium) -> str:
    return str(page.run("document.querySelector('main').innerText"))


def focused(page: Chromium) -> str:
    return str(page.run("document.activeElement.id || document.activeElement.tagName"))


def choose(page: Chromium, at: int, words: str) -> None:
    """Choose a button of a question."""
    page.click(
        f"[...document.querySelectorAll('#value-{at} label')]"
        f".find(l => l.textContent === {json.dumps(words)}).querySelector('input')"
    )


# answers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REAL)
def test_the_pages_own_script_answers_every_row_of_the_real_data(name, page):
    if data_folder() is None:
        pytest.skip(
            "no real data: SENSORTREE_DATA does not name a folder with letter.npz"
        )
    model, X = real(name)
    check_rows(page(model), model, X, None)


@pytest.mark.parametrize("kind", models.KINDS)
def test_the_pages_own_script_answers_every_kind_of_model(kind, page):
    model, X, prices = models.fitted(kind)
    check_rows(page(model), model, X, prices)


def check_rows(page: Chromium, model: Any, X: Any, prices: Any) -> None:
    """Compare what the page's script answers to rows with Python's answers."""
    rows = json.dumps(told_rows(model, X, prices))
    found = page.run(
        f"{rows}.map(({{values, prices}}) => {{"
        "const session = sensortree.policy.follow(values, {prices});"
        "return {...session.decision(), route: session.passed}; })"
    )
    assert differences(found, python_rows(model, X, prices)) == []


# a person ---------------------------------------------------------------------------------


def test_a_person_with_a_keyboard_comes_to_the_answer(page):
    """Enter goes on, the focus is on the first input, and the question is announced."""
    model = clinic()
    browser = page(model, title="Ill?")
    assert heading(browser) == "Question 1: history"
    assert focused(browser) == "value-0"
    browser.press("Enter")
    assert "Enter a number" in text(browser)
    assert browser.run("document.activeElement.getAttribute('aria-invalid')") == "true"
    browser.type("52")
    browser.press("Tab")  # to the box that says it is missing
    browser.press("Tab")
    browser.press(" ")  # takes the first choice
    browser.press("Enter")
    assert browser.run("document.activeElement.closest('main') !== null")
    live = browser.run("document.querySelector('[aria-live]').textContent")
    assert live.startswith(heading(browser))
    session = model.policy_.session()
    session.tell("history", {"age": 52, "sex": "f"})
    step = session.ask()
    assert step is not None
    assert heading(browser) == f"Question 2: {step.sensor}"
    assert f"It costs {step.cost:g}." in live


def test_back_correct_unavailable_stop_and_restart_do_what_they_say(page):
    model = clinic()
    browser = page(model)
    browser.type("52")
    choose(browser, 1, "f")
    browser.click_button("Go on")
    second = heading(browser)
    browser.click_button("Back")
    assert heading(browser) == "Question 1: history"
    assert browser.run("document.getElementById('value-0').value") == "52"
    browser.click_button("Go on")
    assert heading(browser) == second

    browser.click_button("Correct history")
    assert heading(browser) == "Correct: history"
    browser.run("document.getElementById('value-0').value = ''")
    browser.type("33")
    browser.click_button("Save the correction")
    session = model.policy_.session()
    session.tell("history", [52, "f"])
    session.tell("history", [33, "f"], replace=True)
    assert heading(browser) == said(session)

    browser.click_button("Back")
    assert "age: 52" in text(browser)
    sensor = model.policy_.session(known={"history": [52, "f"]}).ask().sensor
    browser.click_button("Not available")
    session = model.policy_.session()
    session.tell("history", [52, "f"])
    session.unavailable(sensor)
    assert heading(browser) == said(session)
    assert f"{sensor}: not available" in text(browser)
    browser.click_button(f"Ask again for {sensor}")
    assert heading(browser) == second

    browser.click_button("Stop here")
    assert heading(browser) == "Answer"
    assert f"the model would have asked for {sensor} next" in text(browser)
    step = model.policy_.step({"history": [52, "f"]})
    label = model.classes_[int(np.argmax(step.proba))]
    assert browser.run("document.querySelector('.label').textContent") == label
    browser.click_button("Back")
    assert heading(browser) == second
    browser.click_button("Stop here")
    browser.click_button("Start again")
    assert heading(browser) == "Question 1: history"
    assert browser.run("document.getElementById('value-0').value") == ""


def said(session: Any) -> str:
    """What the page's heading is where a session stands."""
    step = session.ask()
    n = len(session.to_dict()["log"]) + 1
    return "Answer" if step is None else f"Question {n}: {step.sensor}"


def finish(browser: Chromium, answers: dict[str, list[Any]]) -> None:
    """Answer question after question, until the answer."""
    while heading(browser).startswith("Question"):
        sensor = heading(browser).partition(": ")[2]
        for at, value in enumerate(answers[sensor]):
            if isinstance(value, str):
                choose(browser, at, value)
            else:
                browser.run(f"document.getElementById('value-{at}').focus()")
                browser.type(str(value))
        browser.click_button("Go on")


ANSWERS = {"history": [52, "f"], "pain": ["some"], "blood": [0.7]}


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "forbidden"])
def test_what_is_copied_is_pythons_decision_and_can_be_resumed_there(allowed, page):
    """Where the clipboard may not be written, the text stands below, to be copied."""
    model = clinic()
    browser = page(model)
    kinds = ["clipboardReadWrite", "clipboardSanitizedWrite"] if allowed else []
    browser.call("Browser.grantPermissions", permissions=kinds)
    finish(browser, ANSWERS)
    browser.click_button("Copy as JSON")
    browser.wait("document.querySelector('[role=status]:not(.unseen)').textContent")
    if allowed:
        text = browser.run("navigator.clipboard.readText()")
    else:
        text = browser.run("document.querySelector('textarea').value")
    copied = json.loads(text)
    session = model.policy_.resume(copied["session"])
    decision = session.decision().to_dict()
    proba = decision.pop("proba")
    assert copied["decision"].pop("proba") == pytest.approx(proba, abs=1e-12)
    assert copied["decision"] == decision


def test_the_answer_says_what_was_spent_why_and_shows_the_way(page):
    model = clinic()
    browser = page(model)
    finish(browser, ANSWERS)
    frame, _ = models.text_frame()
    row = frame.iloc[:1].assign(age=52, sex="f", pain="some", crp=0.7)
    told, everything = model.explain(row), float(model.sensors_.costs.sum())
    shown = text(browser)
    assert f"Spent {told.spent:g} on" in shown
    assert f"Everything would have cost {everything:g}" in shown
    for fork in told.forks:
        assert f"Knowing {', '.join(fork.known)}: so far {fork.answer}" in shown
    assert browser.run("document.querySelectorAll('svg.tree text.on').length") >= 2
    assert (
        browser.run("document.querySelector('svg.tree').getAttribute('role')") == "img"
    )


@pytest.mark.parametrize("kind", ["referral", "promised error"])
def test_the_page_says_whom_to_hand_over(kind, page):
    model, X, _ = models.fitted(kind)
    referred = model.referred(X)
    for wanted in (True, False):
        row = X[referred == wanted][0]
        browser = page(model)
        finish(browser, {"a": [float(v) for v in row[:2]], "b": row[2:].tolist()})
        shown = text(browser)
        assert ("Ask a person" in shown) is wanted
        assert ("Best guess: " in shown) is wanted


def test_prices_that_differ_are_asked_for_first(page):
    model, _, _ = models.fitted("price column")
    browser = page(model)
    assert heading(browser) == "Prices of this example"
    browser.type("-1")
    browser.press("Enter")
    assert "Enter a price of at least 0" in text(browser)
    browser.run("document.getElementById('value-0').value = ''")
    browser.type("3.25")
    browser.press("Enter")
    step = model.policy_.session(prices={"b": 3.25}).ask()
    assert heading(browser) == f"Question 1: {step.sensor}"
    assert f"At most {step.worst_case_remaining:g} to come" in text(browser)
    browser.click_button("Back")
    assert browser.run("document.getElementById('value-0').value") == "3.25"


def test_a_value_that_the_model_refuses_is_refused_at_its_input(page):
    model, _, _ = models.fitted("quadratic logistic")
    browser = page(model)
    for at in range(2):
        browser.run(f"document.getElementById('value-{at}').focus()")
        browser.type("1e80" if at else "1")
    browser.press("Enter")  # it is doubted first
    browser.press("Enter")
    error = browser.run("document.getElementById('value-1-error').textContent")
    assert "too large" in error
    assert focused(browser) == "value-1"
    assert not browser.run("document.querySelector('.missing')")  # none may be missing


def test_numbers_are_read_as_the_language_writes_them(page):
    model, _, _ = models.fitted("quadratic logistic")
    browser = page(model, language="de")
    assert browser.run("document.documentElement.lang") == "de"
    browser.type("1.234")
    browser.press("Enter")
    assert "ohne Tausendertrennzeichen" in text(browser)
    browser.run("document.getElementById('value-0').value = ''")
    browser.type("1,5")
    browser.run("document.getElementById('value-1').focus()")
    browser.type("0,25")
    browser.press("Enter")
    told = browser.run("document.querySelector('.told').innerText")
    assert "1,5" in told
    assert "0,25" in told
    browser.run(
        "(s => { s.value = 'en'; s.dispatchEvent(new Event('change')) })"
        "(document.querySelector('footer select'))"
    )
    assert "1.5" in browser.run("document.querySelector('.told').innerText")
    assert browser.run("document.documentElement.lang") == "en"


def test_a_category_that_training_did_not_see_can_be_written(page):
    model = clinic()
    browser = page(model)
    browser.type("52")
    choose(browser, 1, "f")
    browser.click_button("Go on")
    assert heading(browser) == "Question 2: pain"
    choose(browser, 0, "something else")
    browser.click_button("Go on")
    assert "Write what it is." in text(browser)
    browser.run("document.getElementById('value-0-other').focus()")
    browser.type("burning")
    browser.press("Enter")
    assert "pain: burning" in text(browser)


def test_a_number_far_from_training_is_doubted_once(page):
    model, frame, _ = models.fitted("text and gaps")
    browser = page(model)
    low, high = frame["age"].min(), frame["age"].max()
    assert f"In training: {low} to {high}." in text(browser)
    choose(browser, 1, "f")
    browser.run("document.getElementById('value-0').focus()")
    browser.type("4000")
    browser.click_button("Go on")
    assert "If 4000 is right, go on once more." in text(browser)
    assert heading(browser) == "Question 1: history"
    browser.click_button("Go on")
    assert "age: 4000" in text(browser)


def test_hostile_names_are_shown_and_not_run(page):
    X, y = models.numbers()
    hostile = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    model = SensorTreeClassifier({hostile: [0, 1], "b": [2, 3]}, cost_weight=0.001)
    model.fit(X, np.where(y, hostile, "no"))
    browser = page(model, title=hostile)
    assert hostile in browser.run("document.querySelector('h1').textContent")
    browser.click_button("Stop here")
    assert browser.run("document.images.length") == 0
    browser.click_button("Start again")


def test_the_page_keeps_nothing(page):
    browser = page(clinic())
    finish(browser, ANSWERS)
    assert browser.run("[localStorage.length, sessionStorage.length]") == [0, 0]
    assert "sends nothing and keeps nothing" in browser.run("document.body.innerText")


def test_a_large_tree_is_folded_where_the_way_does_not_go(page):
    X, y = models.numbers()
    sensors = {name: Sensor([i], cost=1.0 + i) for i, name in enumerate("abcd")}
    model = SensorTreeClassifier(
        sensors,
        cost_weight=0.0001,
        structure="exhaustive",
        root_sensors=[],
        classifier="linear",
        cv=None,
    ).fit(X, y)
    assert model.tree_.n_leaves > 12
    browser = page(model)
    browser.look(*SIZES["phone"], dark=False)
    finish(browser, {name: [0.5] for name in "abcd"})
    lines = browser.run("document.querySelectorAll('svg.tree text').length")
    assert lines < model.tree_.n_leaves
    assert " ends" in browser.run("document.querySelector('svg.tree').textContent")
    assert browser.run("document.documentElement.scrollWidth") == 390


def test_of_many_answers_the_likeliest_are_named(page):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X.sum(axis=1) * 3).round().clip(-5, 5).astype(int)
    model = SensorTreeClassifier(classifier="linear", structure="cascade").fit(X, y)
    browser = page(model)
    finish(browser, {"x0": [0.5], "x1": [0.5]})
    shown = browser.run(
        "[...document.querySelectorAll('.classes li')].map(l => l.innerText)"
    )
    assert len(shown) == 7
    assert shown[-1].startswith(f"{len(model.classes_) - 6} more answers")


# looks ------------------------------------------------------------------------------------


def screens(page: Any) -> Any:
    """Every screen, one after the other: prices, question, error, correction, answer."""
    browser = page(models.fitted("price column")[0])
    yield "prices", browser
    browser = page(clinic())
    yield "question", browser
    browser.press("Enter")
    yield "error", browser
    browser.type("52")
    choose(browser, 1, "f")
    browser.click_button("Go on")
    browser.run("document.querySelector('details').open = true")
    yield "second question", browser
    browser.click_button("Correct history")
    yield "correction", browser
    browser.click_button("Cancel")
    browser.click_button("Not available")
    yield "after an outage", browser
    browser = page(clinic(), language="de")
    browser.type("52")
    choose(browser, 1, "f")
    browser.click_button("Weiter")
    browser.click_button("Hier aufhören")
    yield "stopped, German", browser
    browser = page(clinic(), title="Ill?")
    finish(browser, ANSWERS)
    yield "answer", browser


@needs_axe
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_nothing_on_any_screen(size, dark, page):
    for name, browser in screens(page):
        browser.look(*SIZES[size], dark=dark)
        browser.run(AXE.read_text(encoding="utf-8") + "; 0")
        found = browser.run("axe.run().then(r => r.violations)")
        told = [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found]
        assert (name, told) == (name, [])


def test_no_screen_is_wider_than_a_phone(page):
    for name, browser in screens(page):
        browser.look(*SIZES["phone"], dark=False)
        wide = browser.run("document.documentElement.scrollWidth")
        assert (name, wide) == (name, 390)


def test_what_can_be_touched_is_large_enough(page):
    """At least 24 pixels each way (WCAG 2.2, target size)."""
    for name, browser in screens(page):
        browser.look(*SIZES["phone"], dark=False)
        small = browser.run(
            "[...document.querySelectorAll('button, select, input[type=text], summary, "
            "label.choice, label.missing')].filter(e => e.offsetParent)"
            ".filter(e => Math.min(e.offsetWidth, e.offsetHeight) < 24)"
            ".map(e => e.outerHTML)"
        )
        assert (name, small) == (name, [])


def test_paper_has_the_answer_and_no_buttons(page):
    browser = page(clinic())
    finish(browser, ANSWERS)
    assert browser.paper().startswith(b"%PDF")
    browser.call("Emulation.setEmulatedMedia", media="print")
    hidden = "[...document.querySelectorAll('button')].every(b => !b.offsetParent)"
    assert browser.run(hidden)
    assert browser.run("document.querySelector('.label').offsetParent !== null")
    browser.call("Emulation.setEmulatedMedia", media="")


# dates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "high", "typed", "shown"),
    [
        ("DD.MM.YYYY", 19400.0, "2022-04-18", "2022-04-18"),
        ("DD.MM.YYYY", 19400.5, "2022-04-18T06:00", "2022-04-18 06:00"),
        ("HH:MM", 0.9, "18:45", "18:45"),
    ],
)
def test_a_date_field_gives_the_day_that_files_give(page, form, high, typed, shown):
    X = np.linspace(high - min(high, 400), high, 80)[:, None]
    middle = float(np.median(X))
    model = SensorTreeClassifier({"seen": [0]}, cost_weight=0.001)
    model.fit(X, X[:, 0] > middle)
    model.reading_ = {"x0": ColumnFormat(date=form)}
    found = page(model)
    field = "document.querySelector('#value-0')"
    found.run(f"{field}.value = {json.dumps(typed)}")
    found.click("document.querySelector('button.main')")
    found.call("Browser.grantPermissions", permissions=[])
    found.click_button("Copy as JSON")
    found.wait("document.querySelector('textarea')")
    copied = json.loads(found.run("document.querySelector('textarea').value"))
    day = day_of(typed, form)
    assert copied["session"]["log"] == [["tell", "seen", [day], False]]
    assert f"x0: {shown}" in text(found)
