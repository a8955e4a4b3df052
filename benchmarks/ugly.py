"""Tables as strangers have them, and what the commands make of them, unedited.

    python -m benchmarks.ugly            # every command on every table: result, seconds
    python -m benchmarks.ugly FOLDER     # the same, and the files are kept there

Each table has something to learn in it, and something that breaks programs which expect a
clean file. All are made by chance, from one seed. Seconds are by the clock, start-up
included.
"""

from __future__ import annotations

import csv
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import numpy as np

N_ROWS = 400
MINUTE = 60.0


@dataclass(frozen=True)
class Ugly:
    """One table: how it is made, what its target is, and what is said about it."""

    make: Callable[[np.random.Generator], bytes]
    target: str
    said: Sequence[str] = ()  # parts of what `init` says on stderr
    left_out: Sequence[str] = ()  # columns that `init` leaves out
    doubted: Sequence[str] = ()  # columns that `check` asks about


class Patients:
    """Numbers with something to learn in them."""

    def __init__(self, rng: np.random.Generator, n_rows: int = N_ROWS):
        self.rng, self.n = rng, n_rows
        self.age = rng.integers(20, 90, n_rows)
        self.crp = rng.gamma(2.0, 8.0, n_rows)
        self.temperature = 36.5 + rng.gamma(1.5, 0.5, n_rows)
        self.leukocytes = rng.gamma(8.0, 1_000.0, n_rows)
        self.sex = rng.choice(["female", "male"], n_rows)
        self.smoker = rng.choice(
            ["never", "former", "current"], n_rows, p=[0.5, 0.3, 0.2]
        )
        risk = (
            0.04 * (self.age - 55)
            + 0.12 * (self.crp - 16)
            + 1.0 * (self.temperature - 37.2)
            + 0.9 * (self.smoker == "current")
        )
        self.sick = risk + rng.logistic(0.0, 0.7, n_rows) > 0.3

    def answer(self, yes: str = "yes", no: str = "no") -> list[str]:
        """The right answers."""
        return [yes if sick else no for sick in self.sick]


def written(
    columns: dict[str, Sequence[object]], delimiter: str = ",", encoding: str = "utf-8"
) -> bytes:
    """Columns as a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode(encoding)


def comma(number: float, digits: int = 1) -> str:
    """A number with a decimal comma."""
    return f"{number:.{digits}f}".replace(".", ",")


def emptied(values: Sequence[object], rng: np.random.Generator, share: float) -> list:
    """Values, some of them missing."""
    gone = rng.random(len(values)) < share
    return ["" if g else v for v, g in zip(values, gone, strict=True)]


def ids_and_dates(rng: np.random.Generator) -> bytes:
    """Identifiers, dates and prose."""
    p = Patients(rng)
    days = [date(2023, 1, 1) + timedelta(int(d)) for d in rng.integers(0, 500, p.n)]
    notes = [
        f"patient reports pain since day {i}, {rng.choice(['mild', 'strong'])} at night"
        for i in range(p.n)
    ]
    return written(
        {
            "patient_id": [f"P-{i:05d}" for i in rng.permutation(p.n)],
            "record": range(1, p.n + 1),
            "admitted": [day.isoformat() for day in days],
            "remarks": notes,
            "age": p.age,
            "crp": p.crp.round(1),
            "smoker": p.smoker,
            "sick": p.sick.astype(int),
        }
    )


def semicolons_and_commas(rng: np.random.Generator) -> bytes:
    """Semicolons, decimal commas, points between thousands."""
    p = Patients(rng)
    return written(
        {
            "Alter": p.age,
            "CRP": [comma(x) for x in p.crp],
            "Temperatur": [comma(x, 2) for x in p.temperature],
            "Leukozyten": [f"{x:,.0f}".replace(",", ".") for x in p.leukocytes],
            "Raucher": p.smoker,
            "krank": p.answer("ja", "nein"),
        },
        delimiter=";",
    )


def thousands(rng: np.random.Generator) -> bytes:
    """Commas between thousands, and dollars."""
    p = Patients(rng)
    return written(
        {
            "age": p.age,
            "leukocytes": [f"{x:,.0f}" for x in p.leukocytes],
            "bill": [f"${x:,.2f}" for x in 300 + 90 * p.crp],
            "temperature": p.temperature.round(1),
            "sick": p.sick.astype(int),
        }
    )


def limits_and_units(rng: np.random.Generator) -> bytes:
    """Limits of devices, units, and the minus of typographers."""
    p = Patients(rng)
    crp = ["<5" if x < 5 else ">60" if x > 60 else f"{x:.1f}" for x in p.crp]
    dose = [f"{x:.0f} mg" if i % 3 else f"{x:.0f}mg" for i, x in enumerate(p.crp * 3)]
    dose[7], dose[11] = "0.2 g", "see chart"
    saturation = [f"{x:.0f} %" for x in 99 - p.crp / 4]
    change = [f"{x:.1f}".replace("-", "\u2212") for x in p.temperature - 37.3]
    return written(
        {
            "age": p.age,
            "crp": crp,
            "dose": dose,
            "saturation": saturation,
            "change": change,
            "sick": p.answer(),
        }
    )


def mixed_categories(rng: np.random.Generator) -> bytes:
    """Capitals and spaces, numbers among words, words among numbers."""
    p = Patients(rng)
    sex = [rng.choice([s, s.upper(), f" {s.title()}"]) for s in p.sex]
    grade = [rng.choice(["1", "2", "3", "high"]) for _ in range(p.n)]
    crp = [f"{x:.1f}" for x in p.crp]
    for i, word in enumerate(("n/a", "unknown", "-", "?", "ERR", "n/a")):
        crp[17 * i] = word
    return written(
        {
            "age": p.age,
            "sex": sex,
            "grade": grade,
            "crp": crp,
            "smoker": p.smoker,
            "sick": p.sick.astype(int),
        }
    )


def many_missing(rng: np.random.Generator) -> bytes:
    """Four cells in ten are empty, and some answers too."""
    p = Patients(rng)
    target = emptied(p.answer(), rng, 0.03)
    return written(
        {
            "age": emptied(p.age, rng, 0.4),
            "crp": emptied(p.crp.round(1), rng, 0.4),
            "temperature": emptied(p.temperature.round(2), rng, 0.4),
            "smoker": emptied(p.smoker, rng, 0.4),
            "sick": target,
        }
    )


def latin_1(rng: np.random.Generator) -> bytes:
    """Letters as Windows wrote them."""
    p = Patients(rng)
    towns = rng.choice(["Köln", "Zürich", "Málaga", "Besançon"], p.n)
    return written(
        {
            "Größe (cm)": (170 + rng.normal(0, 9, p.n)).round(0).astype(int),
            "Stadt": towns,
            "CRP": [comma(x) for x in p.crp],
            "krank": p.answer("für", "gegen"),
        },
        delimiter=";",
        encoding="cp1252",
    )


def bom_and_tabs(rng: np.random.Generator) -> bytes:
    """A mark at the beginning, tabs, a name twice, and none."""
    p = Patients(rng)
    table = written(
        {
            "": range(p.n),
            "age": p.age,
            "crp": p.crp.round(1),
            "crp ": (p.crp + rng.normal(0, 9, p.n)).round(1),
            "smoker": p.smoker,
            "sick": p.sick.astype(int),
        },
        delimiter="\t",
    )
    return b"\xef\xbb\xbf" + table.replace(b"\n", b"\r\n")


def duplicates_and_constants(rng: np.random.Generator) -> bytes:
    """Copies of rows, nothing in columns, the answer in another."""
    p = Patients(rng)
    lines = written(
        {
            "hospital": ["St. Mary"] * p.n,
            "version": [3] * p.n,
            "comment": [""] * p.n,
            "weight": ["NA"] * p.n,
            "age": p.age,
            "crp": p.crp.round(1),
            "diagnosis": ["J18" if sick else "Z00" for sick in p.sick],
            "sick": p.sick.astype(int),
        }
    ).splitlines(keepends=True)
    return b"".join([*lines, *lines[1:60], lines[5]])


def many_levels(rng: np.random.Generator) -> bytes:
    """A category of three hundred levels."""
    p = Patients(rng, 1200)
    wards = np.array([f"ward {i}" for i in range(300)])
    weight = 1.0 / np.arange(1, 301)
    ward = rng.choice(wards, p.n, p=weight / weight.sum())
    ward[:300] = wards
    return written(
        {
            "age": p.age,
            "ward": ward,
            "crp": p.crp.round(1),
            "smoker": p.smoker,
            "sick": p.sick.astype(int),
        }
    )


def stray_capitals(rng: np.random.Generator) -> bytes:
    """An answer in many spellings."""
    p = Patients(rng)
    answers = p.answer("Yes", "No")
    for i in range(0, p.n, 9):
        answers[i] = rng.choice(
            [answers[i].lower(), f"{answers[i]} ", answers[i].upper()]
        )
    return written(
        {
            "age": p.age,
            "crp": p.crp.round(1),
            "temperature": p.temperature.round(1),
            "MI": answers,
        }
    )


def three_rows_of_a_class(rng: np.random.Generator) -> bytes:
    """A class of three rows."""
    p = Patients(rng)
    answers = p.answer("sick", "well")
    for i in (3, 50, 200):
        answers[i] = "dead"
    return written(
        {
            "age": p.age,
            "crp": p.crp.round(1),
            "temperature": p.temperature.round(1),
            "outcome": answers,
        }
    )


def marks_and_footers(rng: np.random.Generator) -> bytes:
    """Answers that nobody knows, and lines below the table that are none."""
    p = Patients(rng)
    answers = p.answer()
    for i, word in enumerate(("?", "unknown", "#N/A", "-", ".", "N/A", "")):
        answers[31 * i + 5] = word
    table = written(
        {
            "sick": answers,
            "age": p.age,
            "crp": [comma(x) for x in p.crp],
            "smoker": p.smoker,
        },
        delimiter=";",
    )
    return table + b"Total;;;\nSource: ward 7, 2024;;;\n"


def leaks_and_row_names(rng: np.random.Generator) -> bytes:
    """A bill that is known only afterwards, and rows that were named and then shuffled."""
    p = Patients(rng, 300)
    severe = p.crp > np.quantile(p.crp, 0.9)
    return written(
        {
            "entry": 1 + rng.permutation(p.n),
            "age": p.age,
            "temperature": p.temperature.round(1),
            "crp": (p.crp + rng.normal(0, 4, p.n)).round(1),
            "bill": np.where(severe, 5_000, 900) + (90 * p.crp).round(0),
            "severe": severe.astype(int),
        }
    )


TABLES = {
    "ids and dates": Ugly(
        ids_and_dates,
        "sick",
        ["admitted is left out: it holds dates (YYYY-MM-DD)"],
        ["patient_id", "record", "admitted", "remarks"],
    ),
    "semicolons": Ugly(
        semicolons_and_commas,
        "krank",
        [
            "cells are separated by ';'",
            "columns CRP, Temperatur: decimal comma (7,5 is 7.5).",
            "column Leukozyten: '8.965' is read as 8965; if it is 8.965, pass --decimal",
        ],
    ),
    "thousands": Ugly(
        thousands,
        "sick",
        [
            "column leukocytes: '8,965' is read as 8965; if it is 8.965, pass --decimal",
            "column bill: commas between thousands (1,207.5 is 1207.5)",
        ],
    ),
    "limits and units": Ugly(
        limits_and_units,
        "sick",
        [
            "cells '<N' or '>N' are read as N, their limit.",
            "cells 'N mg' are read as N.",
            "column dose: '0.2 g' (1) in another unit are read as missing; convert them.",
            "column dose: 'see chart' (1) are no numbers and read as missing.",
            "column saturation: 400 cells 'N %' are read as N.",
        ],
    ),
    "mixed categories": Ugly(
        mixed_categories,
        "sick",
        ["column crp: 'n/a' (2), '-' (1), '?' (1), 'unknown' (1) are read as missing."],
    ),
    "40 % missing": Ugly(
        many_missing, "sick", ["rows are left out: their sick is empty"]
    ),
    "latin-1": Ugly(latin_1, "krank", ["it is not UTF-8; read as cp1252"]),
    "BOM and tabs": Ugly(
        bom_and_tabs,
        "sick",
        [
            "cells are separated by tab",
            "'crp' at 4 is called 'crp_2'",
            "columns without a name are called column_1",
        ],
        ["column_1"],
    ),
    "copies and constants": Ugly(
        duplicates_and_constants,
        "sick",
        ["diagnosis is left out: it is the target under another name"],
        ["hospital", "version", "comment", "weight", "diagnosis"],
    ),
    "300 levels": Ugly(many_levels, "sick"),
    "stray capitals": Ugly(
        stray_capitals,
        "MI",
        ["target MI: 'yes' is read as 'Yes', from which it differs"],
    ),
    "marks and footers": Ugly(
        marks_and_footers,
        "sick",
        [
            "lines 402, 403 are a title or a remark, and left out.",
            "7 rows are left out: their sick is empty or '#N/A' or '-' or '.' or '?'",
        ],
    ),
    "leaks and row names": Ugly(
        leaks_and_row_names,
        "severe",
        [
            "column 'bill' tells the answer of 100.0% of the rows on its own; is it known",
            "column 'entry' holds 300 different integers in 300 rows",
        ],
        doubted=["entry", "bill"],
    ),
    "3 rows of a class": Ugly(three_rows_of_a_class, "outcome"),
}


def write_tables(folder: Path) -> dict[str, Path]:
    """Write all tables into a folder; their paths by name."""
    paths = {}
    for name, table in TABLES.items():
        path = folder / f"{name.replace(' ', '_').replace('%', 'percent')}.csv"
        path.write_bytes(table.make(np.random.default_rng(19)))
        paths[name] = path
    return paths


def commands(path: Path, target: str) -> dict[str, list[str]]:
    """What a newcomer types, in this order."""
    data, sensors, model = (
        str(path.with_suffix(end)) for end in (".csv", ".toml", ".json")
    )
    page = str(path.with_suffix(".html"))
    return {
        "init": ["init", data, "--target", target, "-o", sensors],
        "check": ["check", data, "--sensors", sensors],
        "fit": ["fit", data, "--sensors", sensors, "-o", model],
        "evaluate": ["evaluate", model, data, "--target", target],
        "predict": ["predict", model, data],
        "ask": ["ask", model],
        "explain": ["explain", model, data, "-o", page],
        "report": ["report", model, data, "-o", str(path.with_suffix(".report.html"))],
    }


def typed_answers(model: Path, data: Path, row: int = 0) -> str:
    """What a person types who is asked about one row: its cells, as they stand there."""
    from sensortree.cli.models import open_model, table_for
    from sensortree.cli.tables import read_data

    loaded, table = open_model(model), read_data(data)
    X, names = table_for(loaded, table).X, loaded.sensors_.column_names
    session, typed = loaded.policy_.session(), []
    while (step := session.ask()) is not None:
        values = [X[row, names.index(column)] for column in step.columns]
        typed += [str(table.columns[column][row]) for column in step.columns]
        session.tell(step.sensor, values)
    return "".join(f"{line}\n" for line in typed)


def run(arguments: list[str], typed: str) -> tuple[int, float]:
    """The exit code of a command, and its seconds."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "sensortree", *arguments],
        input=typed,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1, 2, 3) or "Traceback" in done.stderr:
        print(done.stderr, file=sys.stderr)
    return done.returncode, seconds


def measure(folder: Path) -> None:
    """Print a table: the commands on each table, with seconds, and exit codes but 0."""
    shown = list(commands(Path("x.csv"), "y"))
    print(f"| table | {' | '.join(shown)} |\n|---{'|---' * len(shown)}|")
    for name, path in write_tables(folder).items():
        cells = []
        for command, arguments in commands(path, TABLES[name].target).items():
            model = path.with_suffix(".json")
            asks = command == "ask" and model.exists()
            code, seconds = run(arguments, typed_answers(model, path) if asks else "")
            cells.append(f"{seconds:.1f}" + (f" (exit code {code})" if code else ""))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure in a folder that is kept, or in one that is not."""
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        folder.mkdir(parents=True, exist_ok=True)
        measure(folder)
        return
    with tempfile.TemporaryDirectory() as name:
        measure(Path(name))


if __name__ == "__main__":
    main()
