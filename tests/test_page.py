"""`to_page` and `sensortree page`: one file, safe, complete in its languages."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import models
import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import QuantileTransformer
from typer.testing import CliRunner

import sensortree
from sensortree import Sensor, SensorTreeClassifier
from sensortree.cli.app import app
from sensortree.exceptions import ModelFileError, ParameterError
from sensortree.page.build import SCRIPTS, own_texts, with_others, without_comments
from sensortree.page.questions import check_runnable, questions
from sensortree.persistence import scorers
from sensortree.persistence.model import write_model
from sensortree.sensors.seen import MARGIN

PAGE = files("sensortree.page")
HOSTILE = "</script><script>alert(1)</script><!--\u2028'\"&{sensor}"


class Elements(HTMLParser):
    """Elements of a page: their tags, attributes and text, in order."""

    def __init__(self, html: str):
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag):
        self.found.append((f"/{tag}", {}, ""))

    def handle_data(self, data):
        if self.found:
            tag, attrs, text = self.found[-1]
            self.found[-1] = (tag, attrs, text + data)

    def text(self, tag, **attrs):
        return next(
            t for g, a, t in self.found if g == tag and attrs.items() <= a.items()
        )


def test_a_page_is_one_file_that_names_nothing_elsewhere():
    html = sensortree.to_page(models.fitted("pandas")[0])
    page = Elements(html)
    assert not {"link", "img", "iframe", "object"} & {tag for tag, _, _ in page.found}
    assert not any(
        {"src", "href", "style", "onclick"} & a.keys() for _, a, _ in page.found
    )
    addresses = set(re.findall(r"\bhttps?://[^\s\"'<]+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_only_the_pages_own_script_and_style_may_run():
    page = Elements(sensortree.to_page(models.fitted("three classes")[0]))
    policy = next(
        attrs["content"]
        for _, attrs, _ in page.found
        if attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        text = next(t for g, a, t in page.found if g == tag and "type" not in a)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_names_that_look_like_html_stay_names():
    X, y = models.numbers()
    model = SensorTreeClassifier({HOSTILE: [0, 1], "b": [2, 3]})
    model.fit(X, np.where(y, HOSTILE, "no"))
    html = sensortree.to_page(model, title=HOSTILE)
    page = Elements(html)
    assert sum(tag == "script" for tag, _, _ in page.found) == 3
    document = json.loads(page.text("script", id="model"))
    assert document["problem"]["sensors"][0]["name"] == HOSTILE
    assert HOSTILE in document["problem"]["classes"]["values"]
    assert json.loads(page.text("script", id="page"))["title"] == HOSTILE
    assert not any("\u2028" in text for tag, _, text in page.found if tag == "script")


def test_the_model_in_a_page_is_the_model_file(tmp_path):
    """All of it but what no answer depends on, and the digest of that text."""
    model = models.fitted("money")[0]
    sensortree.save(model, tmp_path / "model.json")
    page = Elements(sensortree.to_page(sensortree.load(tmp_path / "model.json")))
    saved = json.loads((tmp_path / "model.json").read_text())
    found = json.loads(page.text("script", id="model"))
    other = {key for key in saved if saved[key] != found[key]}
    assert found.keys() == saved.keys()
    assert other <= {"digest", "baselines"}


def test_same_model_same_page():
    model = models.fitted("pandas")[0]
    assert sensortree.to_page(model) == sensortree.to_page(model)


# what JavaScript cannot run ---------------------------------------------------------------


def test_a_foreign_classifier_is_refused_by_name():
    X, y = models.numbers()
    forest = RandomForestClassifier(3, random_state=0)
    model = SensorTreeClassifier(models.SENSORS, classifier=forest).fit(X, y)
    with pytest.raises(
        ModelFileError, match="RandomForestClassifier, which only Python"
    ):
        sensortree.to_page(model)


def test_a_foreign_transformer_is_refused_with_its_sensor():
    X, y = models.numbers()
    odd = QuantileTransformer(n_quantiles=9)
    model = SensorTreeClassifier({"a": [0, 1], "b": Sensor([2, 3], transformer=odd)})
    with pytest.raises(ModelFileError, match="sensor 'b' is a QuantileTransformer"):
        sensortree.to_page(model.fit(X, y))


def test_the_command_refuses_a_foreign_part_and_writes_nothing(tmp_path):
    X, y = models.numbers()
    forest = RandomForestClassifier(3, random_state=0)
    model = SensorTreeClassifier(models.SENSORS, classifier=forest).fit(X, y)
    sensortree.save(model, tmp_path / "model.json", foreign="skops")
    output = tmp_path / "page.html"
    done = CliRunner().invoke(
        app, ["page", str(tmp_path / "model.json"), "-o", str(output)]
    )
    assert done.exit_code == 1
    assert "RandomForestClassifier, which only Python can run" in done.stderr
    assert not output.exists()


def test_every_kind_of_a_model_file_runs_in_javascript():
    """The kinds that files hold are the kinds that the runtime has."""
    runtime = PAGE.joinpath("runtime.js").read_text(encoding="utf-8")
    for kind in (*scorers.CLASSIFIERS, *scorers.TRANSFORMERS):
        assert re.search(rf"^    {kind}(:|\()", runtime, re.M), kind


def test_a_section_that_the_runtime_does_not_know_is_refused():
    document = write_model(models.fitted("money")[0], None)
    check_runnable(document)
    with pytest.raises(ModelFileError, match="section 'shortcuts'"):
        check_runnable({**document, "shortcuts": {}})


# words ------------------------------------------------------------------------------------


def test_languages_have_the_same_texts_with_the_same_gaps():
    table = own_texts()
    assert set(table) == {"en", "de"}
    with_others({"xx": table["de"]})


def test_every_text_is_used_and_every_used_text_is_there():
    script = PAGE.joinpath("page.js").read_text(encoding="utf-8")
    built = {"noscript"}  # stands in the HTML
    words = set(re.findall(r"\"([a-z_]+)\"", script)) | built
    texts = own_texts()["en"]
    assert [key for key in texts if key not in words and key != "language"] == []
    asked = set(re.findall(r"\b(?:t|button)\(\s*\"(\w+)\"", script))
    assert asked <= set(texts)


def test_other_languages_are_given_as_texts():
    model = models.fitted("money")[0]
    french = {key: f"{text} (fr)" for key, text in own_texts()["en"].items()}
    html = sensortree.to_page(model, language="fr", texts={"fr": french})
    assert '<html lang="fr">' in html
    assert "(fr)</title>" in html


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"fr": {"title": "Une question"}}, "'fr' has no text 'language'"),
        ({"fr": {**own_texts()["en"], "asks": "Question"}}, "must fill in {number}"),
        (
            {"fr": {**own_texts()["en"], "odd": "?"}},
            "a text 'odd' that the page has no",
        ),
        ({"fr": ["title"]}, "texts must map a language"),
    ],
)
def test_a_language_that_is_not_complete_is_refused(texts, message):
    with pytest.raises(ParameterError, match=message):
        sensortree.to_page(models.fitted("money")[0], texts=texts)


def test_a_language_that_nobody_gave_is_refused():
    with pytest.raises(
        ParameterError, match="no texts in the language 'fr'; there are en"
    ):
        sensortree.to_page(models.fitted("money")[0], language="fr")


# what is asked ----------------------------------------------------------------------------


def test_columns_of_categories_are_asked_with_their_choices():
    document = write_model(models.fitted("pandas")[0], None)
    age, sex, pain, crp = questions(document)
    assert age["choices"] is None
    assert crp["choices"] is None
    assert (sex["choices"], sex["open"]) == (["f", "m"], False)
    assert (pain["choices"], pain["open"]) == (["none", "some", "strong"], True)


def test_columns_are_asked_with_what_training_saw_of_them():
    model, frame, _ = models.fitted("text and gaps")
    age, sex, pain, crp = questions(write_model(model, None))
    assert (age["low"], age["high"]) == (frame["age"].min(), frame["age"].max())
    assert age["least"] == age["low"] - MARGIN * (age["high"] - age["low"])
    assert age["always"]
    assert not crp["always"]
    assert sex["choices"] == ["f", "m", "x"]  # the rare one too
    assert pain["choices"] == ["none", "some", "strong"]
    assert pain["open"]


# the command ------------------------------------------------------------------------------


def test_the_command_writes_the_page_and_says_how_large_it_is(tmp_path):
    model, output = tmp_path / "model.json", tmp_path / "page.html"
    sensortree.save(models.fitted("money")[0], model)
    arguments = ["page", str(model), "-o", str(output), "--title", "T", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["size"] == output.stat().st_size
    assert output.read_text(encoding="utf-8") == sensortree.to_page(
        sensortree.load(model), title="T"
    )
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 2
    assert "--force" in again.stderr


def test_the_command_takes_other_languages_from_a_file(tmp_path):
    model, texts = tmp_path / "model.json", tmp_path / "texts.json"
    sensortree.save(models.fitted("money")[0], model)
    texts.write_text(json.dumps({"fr": own_texts()["en"]}))
    output = tmp_path / "page.html"
    arguments = ["page", str(model), "-o", str(output), "--texts", str(texts)]
    done = CliRunner().invoke(app, [*arguments, "--language", "fr"])
    assert done.exit_code == 0, done.stderr
    assert '<html lang="fr">' in output.read_text(encoding="utf-8")
    texts.write_text("[1")
    done = CliRunner().invoke(app, [*arguments, "--force"])
    assert done.exit_code == 2
    assert "is not JSON" in done.stderr


# losses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "unequal"),
    [
        (None, False),
        (500, False),
        ([[0, 5], [5, 0]], False),
        ([[0, 4], [6, 0]], True),
        ([[1, 5], [5, 1]], True),  # right answers cost something
    ],
)
def test_mistakes_that_all_cost_the_same_are_not_said_to_differ(loss, unequal):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    model = SensorTreeClassifier(loss=loss, cost_weight=0.01, classifier="linear")
    html = sensortree.to_page(model.fit(X, X[:, 0] > 0))
    assert json.loads(Elements(html).text("script", id="page"))["unequal"] is unequal


# size -------------------------------------------------------------------------------------


def test_the_runtime_is_small():
    size = len(
        without_comments(PAGE.joinpath("runtime.js").read_text(encoding="utf-8"))
    )
    assert size < 38 * 1024


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_text_of_a_script_runs_over_a_line(name):
    """So that lines may be stripped: every line has its quotes in pairs."""
    for line in PAGE.joinpath(name).read_text(encoding="utf-8").splitlines():
        code = re.sub(r"^\s*//.*|\s// .*$", "", line)
        code = re.sub(
            r"/(?![*/ ])(?:\\.|\[[^\]]*\]|[^/\\\n])+/[gimu]*(?=[.,;)\s]|$)", "", code
        )
        assert code.count("`") % 2 == 0, line
