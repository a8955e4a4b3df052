"""`inspect`, `plot` and `verify`: what a model file holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import typer

from sensortree.cli import options
from sensortree.cli.console import check_free, emit, picture, write


def inspect(model: options.Model, as_json: options.Json = False) -> None:
    """Show what a model is about: data, prices, tree, held-out score, certificate."""
    from sensortree.cli.models import open_model

    document = described(open_model(model))
    emit("inspect", document, _described_text(document), as_json)


def described(model: Any) -> dict[str, Any]:
    """A model in plain values."""
    sensors, policy = model.sensors_, model.policy_
    seen, outages, curve = policy.reader.seen, model.outage_report_, model.curve_
    compared = model.comparison_
    listed = [
        {
            "sensor": name,
            "cost": float(sensors.costs[i]),
            "varies": sensors.terms[i].varies,
            "columns": [sensors.column_names[c] for c in sensors.columns[i]],
            "seen": None if seen is None else [asdict(s) for s in seen[i]],
            "seen_text": None if seen is None else list(map(str, seen[i])),
            "group": sensors.terms[i].group,
            "surcharge": sensors.terms[i].surcharge,
            "discounted_cost": float(sensors.costs[i]) - sensors.terms[i].surcharge,
            "after": sorted(sensors.terms[i].after),
            "one_of": sensors.terms[i].one_of,
        }
        for i, name in enumerate(sensors.names)
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
    from sensortree.text import aligned

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
        if speaks_of := proof.get("speaks_of"):  # files of before do not say
            certificate += f"\nof {speaks_of}"
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
    """A part with its heading; none if there is nothing to say."""
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
    said = [
        f"{true} for {answer}: {cost:g}{unit}"
        for true, row in zip(classes, rows, strict=True)
        for answer, cost in zip(classes, row, strict=True)
        if cost
    ]
    return f"mistaking {', '.join(said[:6])}{', ...' if len(said) > 6 else ''}"


def _seen_text(sensors: list[dict[str, Any]]) -> list[str]:
    """What training saw of each column, if the model remembers."""
    from sensortree.text import aligned

    lines = [
        [column, said]
        for sensor in sensors
        for column, said in zip(
            sensor["columns"], sensor["seen_text"] or (), strict=False
        )
    ]
    return [aligned(("column", "training had"), lines, "left"), ""] if lines else []


def _terms_text(sensor: dict[str, Any]) -> str:
    """What a sensor's price and purchase depend on."""
    said = []
    if sensor["group"] is not None and sensor["surcharge"]:
        cheaper = "less" if sensor["varies"] else "in all"
        price = sensor["surcharge" if sensor["varies"] else "discounted_cost"]
        said.append(f"{price:g} {cheaper} after another of {sensor['group']}")
    elif sensor["group"] is not None:
        said.append(f"of {sensor['group']}")
    if sensor["after"]:
        said.append(f"needs {', '.join(sensor['after'])}")
    if sensor["one_of"] is not None:
        said.append(f"one of {sensor['one_of']}")
    return "; ".join(said) or "–"


def plot(
    model: options.Model,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="SVG",
            help="Picture; .svg, .html, .txt, .png or .pdf.",
        ),
    ] = Path("tree.svg"),
    unit: Annotated[
        str | None,
        typer.Option(
            "--unit",
            metavar="TEXT",
            show_default=False,
            help="What prices are counted in; by default what the model says.",
        ),
    ] = None,
    leaves: Annotated[
        int,
        typer.Option(
            "--leaves",
            metavar="N",
            min=1,
            help="In a larger tree, fold what few rows reach until N lines are left.",
        ),
    ] = 32,
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


def verify(model: options.Model, as_json: options.Json = False) -> None:
    """Check a model file, and that it agrees with itself."""
    from sensortree.cli.models import open_model
    from sensortree.cli.selfcheck import check_answers

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
