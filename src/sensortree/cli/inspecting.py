"""`inspect`, `plot`, `page` and `verify`: what a model file holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sensortree.cli import options
from sensortree.cli.console import check_free, emit, picture, write
from sensortree.cli.options import option, output_file
from sensortree.exceptions import ModelFileError
from sensortree.text import aligned

if TYPE_CHECKING:
    from sensortree.persistence.saved import SavedModel

ROWS_ASKED = 50  # by `verify`


def inspect(model: options.Model, as_json: options.Json = False) -> None:
    """Show what a model is about: data, prices, tree, held-out score, certificate."""
    from sensortree.cli.models import open_model

    document = described(open_model(model))
    emit("inspect", document, _described_text(document), as_json)


def described(model: SavedModel) -> dict[str, Any]:
    """A model in plain values."""
    sensors, policy = model.sensors_, model.policy_
    seen, outages, curve = policy.reader.seen, model.outage_report_, model.curve_
    compared = model.comparison_
    listed = [
        {
            "sensor": name,
            "cost": float(sensors.costs[i]),
            "varies": terms.varies,
            "columns": [sensors.column_names[c] for c in sensors.columns[i]],
            "seen": None if seen is None else [asdict(s) for s in seen[i]],
            "seen_text": None if seen is None else list(map(str, seen[i])),
            "group": terms.group,
            "surcharge": terms.surcharge,
            "discounted_cost": float(sensors.costs[i]) - terms.surcharge,
            "after": sorted(terms.after),
            "one_of": terms.one_of,
        }
        for i, (name, terms) in enumerate(
            zip(sensors.names, sensors.terms, strict=True)
        )
    ]
    return {
        "about": asdict(model.about_),
        "about_text": str(model.about_),
        "classes": model.classes_.tolist(),
        "sensors": listed,
        "cost_weight": policy.cost_weight,
        "max_cost": policy.max_cost,
        "risk": policy.loss.name,
        "mistake_cost": policy.loss.per_mistake,
        "loss": policy.loss.matrix,
        "referral": None if policy.referral is None else asdict(policy.referral),
        "referral_text": None if policy.referral is None else str(policy.referral),
        "tree": model.tree_.to_dict(),
        "tree_text": str(model.tree_),
        "certificate": model.certificate_,
        "decisions": model.decision_report_,
        "comparison": None if compared is None else compared.to_dict(),
        "comparison_text": "" if compared is None else str(compared),
        "outages": outages.to_dict() if outages is not None else None,
        "outages_text": "" if outages is None else str(outages),
        "curve": None if curve is None else curve.to_dict(),
        "curve_text": "" if curve is None else f"{curve}\n{model.chosen_}",
        "digest": policy.digest,
    }


def _described_text(document: dict[str, Any]) -> str:
    lines = [
        [
            s["sensor"],
            "varies" if s["varies"] else f"{s['cost']:g}",
            _terms_text(s),
            ", ".join(s["columns"]),
        ]
        for s in document["sensors"]
    ]
    proof = document["certificate"]
    certificate = "none"
    if proof is not None:
        limit = f" over coefficients up to {proof['reach']:.0e}"
        certificate = (
            f"optimum{limit if isfinite(proof['reach']) else ''} in "
            f"[{proof['lower']:.6g}, {proof['upper']:.6g}], to {proof['tol']:.2g}"
        )
        if speaks_of := proof.get("speaks_of"):  # older files lack it
            certificate += f"\nabout {speaks_of}"
    cap, unit = document["max_cost"], document["about"]["unit"]
    cost = f"cost ({unit})" if unit else "cost"
    return "\n".join(
        [
            *([document["about_text"], ""] if document["about_text"] else []),
            aligned(("sensor", cost, "terms", "columns"), lines, "left"),
            "",
            *_seen_text(document["sensors"]),
            document["tree_text"],
            "",
            f"classes: {', '.join(map(str, document['classes']))}"
            if document["classes"]
            else "answers: numbers",
            f"cost_weight: {document['cost_weight']:g}; max_cost: "
            f"{'none' if cap is None else format(cap, 'g')}; "
            f"{_mistakes_text(document)}",
            *([document["referral_text"]] if document["referral_text"] else []),
            f"certificate of the linear program: {certificate}",
            *_part("compared on held-out rows", document["comparison_text"]),
            *_part("if a sensor cannot be had (risk)", document["outages_text"]),
            *_part("picked from, on held-out folds", document["curve_text"]),
            f"digest: {document['digest']}",
        ]
    )


def _part(title: str, text: str) -> list[str]:
    """A part with its heading; nothing if the text is empty."""
    return [f"\n{title}:", text, ""] if text else []


def _mistakes_text(document: dict[str, Any]) -> str:
    """What wrong answers cost, or how probabilities are judged."""
    if not document["classes"]:
        return f"answers are judged by {document['risk']}"
    if document["risk"] not in ("error", "loss"):
        return f"probabilities are judged by {document['risk']}"
    if document["loss"] is None:
        return "a wrong answer counts 1"
    unit = f" {document['about']['unit']}" if document["about"]["unit"] else ""
    if document["mistake_cost"] is not None:
        return f"a wrong answer costs {document['mistake_cost']:g}{unit}"
    classes, rows = document["classes"], document["loss"].tolist()
    mistakes = [
        f"{true} for {answer}: {cost:g}{unit}"
        for true, row in zip(classes, rows, strict=True)
        for answer, cost in zip(classes, row, strict=True)
        if cost
    ]
    return f"mistaking {', '.join(mistakes[:6])}{', ...' if len(mistakes) > 6 else ''}"


def _seen_text(sensors: list[dict[str, Any]]) -> list[str]:
    """What training saw of each column, if the model file has it."""
    lines = [
        [column, seen]
        for sensor in sensors
        for column, seen in zip(
            sensor["columns"], sensor["seen_text"] or (), strict=False
        )
    ]
    return [aligned(("column", "training had"), lines, "left"), ""] if lines else []


def _terms_text(sensor: dict[str, Any]) -> str:
    """What the price and the purchase of a sensor depend on."""
    terms = []
    if sensor["group"] is not None and sensor["surcharge"]:
        cheaper = "less" if sensor["varies"] else "in all"
        price = sensor["surcharge" if sensor["varies"] else "discounted_cost"]
        terms.append(f"{price:g} {cheaper} after another of {sensor['group']}")
    elif sensor["group"] is not None:
        terms.append(f"of {sensor['group']}")
    if sensor["after"]:
        terms.append(f"needs {', '.join(sensor['after'])}")
    if sensor["one_of"] is not None:
        terms.append(f"one of {sensor['one_of']}")
    return "; ".join(terms) or "–"


def plot(
    model: options.Model,
    output: Path = output_file(
        "SVG", "Picture; .svg, .html, .txt, .png or .pdf.", Path("tree.svg")
    ),
    unit: str | None = option(
        "--unit TEXT", "What prices are counted in; by default what the model says."
    ),
    leaves: int = option(
        "--leaves N",
        "In a larger tree, fold what few rows reach until N lines are left.",
        32,
        min=1,
    ),
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Draw the tree, with the training rows that took each way."""
    from sensortree.cli.models import open_model
    from sensortree.display import TreeDisplay

    check_free(output, force)
    display = TreeDisplay.from_estimator(
        open_model(model), unit=unit, max_leaves=leaves
    )
    kind = output.suffix.lower()
    texts: dict[str, Callable[[], str]] = {
        ".svg": display.to_svg,
        ".html": display.to_html,
        ".txt": lambda: display.to_text() + "\n",
    }
    if kind in texts:
        write(output, texts[kind]())
    else:
        kinds = ".svg, .html, .txt, .png or .pdf"
        write(output, picture(display.plot().figure_, output, kinds))
    emit("plot", {"output": str(output)}, f"{output} written.", as_json)


def page(
    model: options.Model,
    output: Path = output_file("HTML", "Where to write the page.", Path("page.html")),
    title: str | None = option(
        "--title TEXT", "What stands at the top; by default what the model predicts."
    ),
    language: str | None = option(
        "--language CODE", "Language of the page, en or de; by default the browser's."
    ),
    texts: Path | None = option(
        "--texts JSON",
        'Other languages: {"fr": {...}}, with every key of the English texts.',
        **options.IS_FILE,
    ),
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write one HTML file that asks for the sensors, in any browser, offline."""
    from sensortree.cli.models import open_model
    from sensortree.page import to_page
    from sensortree.page.questions import only_python

    check_free(output, force)
    try:
        loaded = open_model(model)
    except ModelFileError as error:
        what, foreign, _ = str(error).partition(", written by skops")
        raise (only_python(what) if foreign else error) from error
    html = to_page(loaded, title=title, language=language, texts=_read_texts(texts))
    write(output, html)
    document = {"output": str(output), "size": len(html.encode())}
    emit("page", document, f"{output} written; open it in a browser.", as_json)


def _read_texts(path: Path | None) -> dict[str, Any] | None:
    """Texts of other languages."""
    if path is None:
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise typer.BadParameter(
            f"{path} is not JSON ({error}).", param_hint="--texts"
        ) from error
    if not isinstance(found, dict):
        raise typer.BadParameter(
            f'{path} must hold an object, {{"fr": {{...}}}}.', param_hint="--texts"
        )
    return found


def verify(model: options.Model, as_json: options.Json = False) -> None:
    """Check a model file: limits, version, digest, parts and answers."""
    from sensortree.cli.models import open_model

    loaded = open_model(model)  # limits, version, digest, and that all parts fit
    n_rows = check_answers(loaded)
    document = {
        "size": model.stat().st_size,
        "digest": loaded.policy_.digest,
        "checked": ["limits", "format version", "digest", "parts", "answers"],
        "rows_asked": n_rows,
    }
    text = (
        f"{model}: {document['size']:,} bytes, within all limits, of a known version; "
        f"digest right; all parts fit;\n{n_rows} made-up rows are answered alike at once "
        f"and step by step.\ndigest: {document['digest']}"
    )
    emit("verify", document, text, as_json)


def check_answers(model: SavedModel) -> int:
    """Check that made-up rows get one answer at once and step by step; count them."""
    import numpy as np

    policy, sensors = model.policy_, model.sensors_
    X = _made_up_rows(model)
    answers, costs, places = model.predict(X), model.acquisition_cost(X), model.apply(X)
    for row, values in enumerate(X):

        def read(
            name: str, columns: tuple[str, ...], values: Any = values
        ) -> list[Any]:
            return [values[c] for c in sensors.columns[sensors.index(name)]]

        prices = {
            sensors.names[j]: float(values[sensors.terms[j].price_column])
            for j in map(int, sensors.varying)
            if sensors.terms[j].price_column is not None
        }
        decision = policy.acquire(read, prices=prices or None)
        same = (
            decision.label == answers[row]
            and decision.place == places[row]
            and np.isclose(decision.spent, costs[row], rtol=1e-9, atol=1e-12)
        )
        if not same:
            raise ModelFileError(
                f"the model contradicts itself on a made-up row: {answers[row]!r} for "
                f"{costs[row]:g} at once, {decision.label!r} for {decision.spent:g} step "
                f"by step; do not use it."
            )
    return len(X)


def _made_up_rows(model: SavedModel) -> Any:
    """Rows of numbers and categories such as training had, the same for every call."""
    import numpy as np

    from sensortree.cli.tables import stacked

    rng = np.random.default_rng(0)
    categories = model.categories_
    seen = model.policy_.reader.seen_by_column
    columns = []
    for at, name in enumerate(model.sensors_.column_names):
        values = np.abs(rng.normal(size=ROWS_ASKED) * 3)
        before = seen.get(at)
        if before is not None and before.low is not None and before.high is not None:
            values = rng.uniform(before.low, before.high, size=ROWS_ASKED)
        if name in categories:
            drawn = rng.integers(len(categories[name]), size=ROWS_ASKED)
            values = np.array([categories[name][i] for i in drawn], dtype=object)
        columns.append(values)
    return stacked(columns)
