"""Claims about what cells, columns and files of cells say."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sensortree
from sensortree.cells.numbers import Wanted, read_numbers
from sensortree.cells.words import (
    ColumnFormat,
    date_form,
    day_number,
    day_of,
    one_spelling,
)
from sensortree.cli.app import app
from sensortree.cli.column_warnings import column_warning
from sensortree.cli.options import Layout
from sensortree.cli.problem import pose
from sensortree.cli.sensors_file import read_sensors_file
from sensortree.cli.tables import DataFile, find_delimiter, read_data
from sensortree.exceptions import DataError, ModelFileError
from sensortree.page.questions import questions
from sensortree.persistence.model import read_model


def numbers(*cells: str, **known) -> list[float]:
    return read_numbers(cells, Wanted(**known)).values.tolist()


# one cell ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "number"),
    [
        ("37,3", 37.3),
        ("1.234,5", 1234.5),
        ("1,234.5", 1234.5),
        ("1,234,567", 1234567.0),
        ("1 234,5", 1234.5),
        ("1\u202f234", 1234.0),
        ("1'234.5", 1234.5),
        ("12,34,567", 1234567.0),
        ("0,512", 0.512),
        ("1234,567", 1234.567),
        (",5", 0.5),
        ("\u22120.5", -0.5),
        ("- 3", -3.0),
        ("(1,200)", -1200.0),
        ("<0.5", 0.5),
        ("≥ 100", 100.0),
        ("12 mg", 12.0),
        ("12mg/dl", 12.0),
        ("5 %", 5.0),
        ("$1,200.50", 1200.5),
        ("1.200,50 €", 1200.5),
        ("1e3", 1000.0),
        ("1,5e3", 1500.0),
    ],
)
def test_a_number_is_read_however_it_is_written(cell, number):
    assert numbers(cell) == [number]


@pytest.mark.parametrize(
    "cell", ["1,2,3", "5-10", "1.2.3.4", "12 5", "1_000", "inf", "12:30", "x12", "A"]
)
def test_what_is_no_number_is_not_read_as_one(cell):
    assert read_numbers([cell], Wanted()).strays == {cell: 1}


@pytest.mark.parametrize("cell", ["", "NA", "n/a", "?", "-", "Unknown", "#DIV/0!", "."])
def test_words_for_nothing_are_missing(cell):
    found = read_numbers(["1", cell], Wanted())
    assert np.isnan(found.values).tolist() == [False, True]
    assert found.is_number


# a column ---------------------------------------------------------------------------------


def test_a_column_tells_what_its_comma_means():
    assert numbers("3,512", "37,3") == [3.512, 37.3]
    assert numbers("3,512", "1,234,567") == [3512.0, 1234567.0]
    assert numbers("3,512", "987") == [3512.0, 987.0]
    assert numbers("3,512", "1987") == [3.512, 1987.0]


def test_a_comma_that_may_mean_both_is_said_with_the_way_to_the_other():
    (note,) = read_numbers(["3,512", "8,900"], Wanted()).notes()
    assert note.startswith(
        "'3,512' is read as 3512; if it is 3.512, pass --decimal \",\""
    )
    said = numbers("3,512", decimal=",")
    assert said == [3.512]
    assert numbers("3.512", decimal=",", thousands=".") == [3512.0]


def test_the_file_decides_where_a_column_does_not():
    assert numbers("3,512", decimal_of_file=",") == [3.512]
    assert numbers("3.512", decimal_of_file=",") == [3512.0]
    assert numbers("3.512") == [3.512]
    # What a column shows itself counts more.
    assert numbers("3.512", "37.3", decimal_of_file=",") == [3.512, 37.3]


def test_a_column_is_read_as_before_unless_it_denies_it():
    before = ColumnFormat(decimal=",", thousands=".")
    assert numbers("3.512", known=before) == [3512.0]
    assert numbers("3.51", known=before) == [3.51]
    assert numbers("3,512", known=ColumnFormat(thousands=",")) == [3512.0]
    assert numbers("3,512", known=ColumnFormat(decimal=",")) == [3.512]


def test_another_unit_is_not_the_same_number():
    found = read_numbers([*["12 mg"] * 20, "12 MG", "1.2 g"], Wanted())
    assert found.is_number
    assert np.isnan(found.values[-1])
    assert found.values[-2] == 12
    assert any("'1.2 g' (1) in another unit" in note for note in found.notes())


def test_a_column_of_two_units_is_no_column_of_numbers():
    found = read_numbers(["3 years", "1 year", "6 months", "8 months"], Wanted())
    assert not found.is_number
    assert found.has_two_units
    assert read_numbers(["1st", "2nd", "3rd"], Wanted()).is_number is False


def test_a_handful_of_words_is_missing_and_half_of_them_make_text():
    few = read_numbers([*map(str, range(30)), "broken"], Wanted())
    assert few.is_number
    assert few.notes() == ["'broken' (1) are no numbers and read as missing"]
    assert few.form.missing == ("broken",)
    half = read_numbers([*map(str, range(30)), *["broken"] * 30], Wanted())
    assert not half.is_number


def test_a_plain_column_has_nothing_to_say():
    found = read_numbers(["1", "2.5", "", "-3e2", "NA"], Wanted())
    assert found.notes() == []
    assert found.form == ColumnFormat()


def test_the_most_frequent_spelling_is_the_one():
    found = one_spelling(["Yes", "yes", "Yes", "no", "NO ", "no", "y es"])
    assert found == {
        "Yes": "Yes",
        "yes": "Yes",
        "no": "no",
        "NO ": "no",
        "y es": "y es",
    }


# dates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["2024-02-29", "2023-01-01"], "YYYY-MM-DD"),
        (["2024-02-29T12:30:00Z"], "YYYY-MM-DD"),
        (["29.2.2024", "1.1.24"], "DD.MM.YYYY"),
        (["29/02/2024", "01/03/2024"], "DD/MM/YYYY"),
        (["02/29/2024", "01/03/2024"], "MM/DD/YYYY"),
        (["20240229"], "YYYYMMDD"),
        (["29 Feb 2024", "1-Mar-24"], "DD Mon YYYY"),
        (["Feb 29, 2024 1:30 PM"], "Mon DD, YYYY"),
        (["2024/02/29 1:30:05 PM GMT+1"], "YYYY/MM/DD"),
        (["12:30", "9:05"], "HH:MM"),
        (["2023-02-29"], ""),
        (["1.5", "2.5"], ""),
        (["12345678", "87654321"], ""),
        (["", "NA"], ""),
    ],
)
def test_dates_are_recognised_by_their_form(cells, form):
    assert date_form(cells) == form


def test_a_date_is_a_number_of_days():
    assert day_number("1970-01-02", "YYYY-MM-DD") == 1.0
    assert day_number("1.1.1970 12:00", "DD.MM.YYYY") == 0.5
    assert day_number("1969-12-31", "YYYY-MM-DD") == -1.0


# columns that should be no sensors ----------------------------------------------------


def warning_about(cells: list[str], name: str = "x", labels=None):
    labels = np.arange(len(cells)) % 2 if labels is None else labels
    return column_warning(
        DataFile(Path("t.csv"), {name: cells}, range(len(cells))), name, labels
    )


RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 100)


@pytest.mark.parametrize(
    ("name", "cells", "reason"),
    [
        ("who", [f"p{i}" for i in range(100)], "is an identifier"),
        ("row", list(map(str, range(100))), "is an identifier"),
        ("PatientID", list(map(str, RNG.permutation(10**6)[:100])), "is an identifier"),
        ("seen", [f"2024-01-{1 + i % 28:02}" for i in range(100)], "holds dates"),
        (
            "note",
            [f"he said that it was {i} again" for i in range(100)],
            "is free text",
        ),
        ("same", ["x"] * 100, "is 'x' in all rows"),
        ("none", [""] * 100, "is empty in all rows"),
        ("town", [f"t{i % 60}" for i in range(100)], "has too many categories"),
        ("copy", ["ab"[i] for i in LABELS], "is the target under another name"),
    ],
)
def test_what_cannot_be_a_sensor_is_left_out_with_the_reason(name, cells, reason):
    found = warning_about(cells, name, LABELS)
    assert found.leave_out
    assert found.reason.startswith(reason)


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("weight", [f"{x:.3f}" for x in RNG.normal(size=100)]),
        ("platelets", list(map(str, RNG.permutation(10**6)[:100]))),
        ("age", [str(20 + i % 50) for i in range(100)]),
        ("town", [f"t{i % 30}" for i in range(100)]),
        ("rare", ["1", *[""] * 99]),
        ("few rows", [f"p{i}" for i in range(10)]),
    ],
)
def test_what_can_be_a_sensor_is_one(name, cells):
    assert warning_about(cells, name) is None


def test_a_column_that_nearly_tells_the_answer_stays_with_a_warning():
    cells = [f"{2 * c + 0.1 * RNG.normal():.3f}" for c in LABELS]
    found = warning_about(cells, "marker", LABELS)
    assert not found.leave_out
    assert "100.0% of the rows on its own" in found.reason


def test_a_number_that_stands_for_nothing_is_doubted_and_can_be_said_to(tmp_path):
    ages = [str(30 + i % 40) for i in range(95)] + ["999"] * 5
    found = warning_about(ages, "age")
    assert not found.leave_out
    assert 'age = { missing = ["999"] } under [reading]' in found.reason
    assert warning_about([*ages[:95], *["71"] * 5], "age") is None
    path = tmp_path / "s.toml"
    path.write_text(
        '[reading]\nage = { missing = ["999"] }\n[sensors.age]\ncolumns = "age"\ncost = 1'
    )
    known = read_sensors_file(path).known["age"]
    assert np.isnan(numbers(*ages, known=known)[95:]).all()


# files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "delimiter"),
    [
        (["a,b", "1,2"], ","),
        (["a;b", "1,5;2,5", "2,5;3,5"], ";"),
        (["a\tb", "1,5\t2"], "\t"),
        (["a|b|c", "1|2|3"], "|"),
        (["a", "1"], ","),
        (["Table of 2024", "", "a;b;c", "1;2;3", "1;2;3"], ";"),
        (["name,note", '"x","a;b;c"', '"y","d;e;f"'], ","),
    ],
)
def test_the_delimiter_is_the_one_that_makes_rows_alike(lines, delimiter):
    assert find_delimiter(lines) == delimiter


def table(tmp_path: Path, contents: bytes, **layout) -> DataFile:
    path = tmp_path / "t.csv"
    path.write_bytes(contents)
    return read_data(path, Layout(**layout))


def test_letters_are_read_as_they_were_written(tmp_path):
    text = "größe,y\n1,ü\n"
    for encoding, said in (("utf-8", False), ("cp1252", True), ("utf-16", True)):
        data = table(tmp_path, text.encode(encoding))
        assert data.columns == {"größe": ["1"], "y": ["ü"]}
        assert bool(data.notes) == said
    data = table(tmp_path, text.encode("cp437"), encoding="cp437")
    assert "größe" in data.columns
    with pytest.raises(DataError, match="pass another --encoding"):
        table(tmp_path, text.encode("cp1252"), encoding="utf-8")
    with pytest.raises(DataError, match="cannot be read as utf-16"):
        table(tmp_path, text.encode("utf-16")[:-1])  # it was cut off
    with pytest.raises(DataError, match="there is no encoding 'klingon'"):
        Layout(encoding="klingon")


def test_names_of_columns_are_made_different_and_it_is_said(tmp_path):
    data = table(tmp_path, b"a,a,,a_2,,\n1,2,3,4,,\n")
    assert data.columns == {"a": ["1"], "a_3": ["2"], "column_3": ["3"], "a_2": ["4"]}
    assert any("'a' at 2 is called 'a_3'" in note for note in data.notes)
    assert any("without a name are called column_3" in note for note in data.notes)


def test_titles_and_remarks_are_no_rows(tmp_path):
    contents = b"Ward 7\n\nsep,of,x,y\n1,2,3,4\n5,6,7,8\nSource: archive\n,,,\n"
    data = table(tmp_path, contents)
    assert data.columns["sep"] == ["1", "5"]
    assert data.lines == [4, 5]
    assert any("lines 1, 6 are a title or a remark" in note for note in data.notes)


def test_a_row_of_several_lines_goes_by_the_first(tmp_path):
    data = table(tmp_path, b'a,b\n"x\ny",1\n\nz,2\n')
    assert data.lines == [2, 5]


def test_what_excel_writes_for_itself_is_no_row(tmp_path):
    data = table(tmp_path, b"sep=;\na;b\n1;2\n")
    assert data.columns == {"a": ["1"], "b": ["2"]}
    assert data.lines == [3]


def test_other_kinds_of_files_are_named(tmp_path):
    with pytest.raises(DataError, match="Excel workbook; save the sheet as CSV"):
        table(tmp_path, b"PK\x03\x04 and so on")
    with pytest.raises(DataError, match="compressed by gzip"):
        table(tmp_path, b"\x1f\x8b\x08")


def test_a_line_of_another_length_is_known_by_its_number(tmp_path):
    data = table(tmp_path, b"a,b,c\n1,2,3\n1,2\n1,2,3,,\n1,2,3,4\n")
    assert sorted(data.broken) == [1, 3]
    with pytest.raises(DataError, match=r"line 3: there are 2 cells.*2 lines are like"):
        data.whole()


def test_a_name_that_is_nearly_right_is_offered(tmp_path):
    data = table(tmp_path, b"age,mi\n1,2\n")
    with pytest.raises(DataError, match=r"no column 'MI', .*did you mean 'mi'\?"):
        data.require("MI", "--target")


# the way from a training file to another ----------------------------------------------


def run(*arguments: object, code: int = 0):
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture(scope="module")
def clinic(tmp_path_factory) -> Path:
    """A model of a table with thousands, units, words for nothing, and dates."""
    folder = tmp_path_factory.mktemp("clinic")
    rng = np.random.default_rng(3)
    count, dose = rng.gamma(8.0, 1000.0, 300), rng.gamma(2.0, 10.0, 300)
    day = rng.integers(1, 28, 300)
    sick = count / 3000 + dose / 15 + day / 10 + rng.normal(0, 0.5, 300) > 5.4
    lines = [
        [f"{c:,.0f}", f"{d:.1f} mg", f"{t:02}.03.2024", "Yes" if s else "No"]
        for c, d, t, s in zip(count, dose, day, sick, strict=True)
    ]
    lines[4][1] = "spilt"
    with open(folder / "t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["count", "dose", "day", "sick"], *lines])
    (folder / "s.toml").write_text(
        'target = "sick"\ncost_weight = 1e-4\n'
        '[sensors.count]\ncolumns = "count"\ncost = 1\n'
        '[sensors.dose]\ncolumns = "dose"\ncost = 1\ntransformer = "impute"\n'
        '[sensors.day]\ncolumns = "day"\ncost = 1\ntransformer = "date"\n'
    )
    run(
        "fit", folder / "t.csv", "--sensors", folder / "s.toml", "-o", folder / "m.json"
    )
    return folder


def test_a_model_knows_how_its_table_was_written(clinic):
    assert sensortree.load(clinic / "m.json").reading_ == {
        "count": ColumnFormat(thousands=","),
        "dose": ColumnFormat(unit="mg", missing=("spilt",)),
        "day": ColumnFormat(date="DD.MM.YYYY"),
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [("decimal", ";"), ("thousands", 3), ("unit", None), ("missing", [1]), ("say", 1)],
)
def test_a_model_file_that_reads_in_no_known_way_is_refused(clinic, key, value):
    document = json.loads((clinic / "m.json").read_text())
    document["reading"][0][key] = value
    with pytest.raises(ModelFileError, match=rf"reading\[0\]\.{key}"):
        read_model(document)


def test_one_row_is_read_as_the_table_was(clinic, tmp_path):
    whole = run("predict", clinic / "m.json", clinic / "t.csv", "--json")
    expected = json.loads(whole.stdout)["rows"]
    lines = (clinic / "t.csv").read_text().splitlines()
    for at in (0, 1, 2, 4):
        (tmp_path / "one.csv").write_text(f"{lines[0]}\n{lines[1 + at]}\n")
        found = run("predict", clinic / "m.json", tmp_path / "one.csv", "--json")
        assert found.stderr == ""
        (row,) = json.loads(found.stdout)["rows"]
        assert {**row, "line": at + 2} == expected[at]


def test_a_page_asks_for_dates_with_a_date_field(clinic, tmp_path):
    run("page", clinic / "m.json", "-o", tmp_path / "p.html")
    asked = questions(json.loads((clinic / "m.json").read_text()))
    assert [question.get("date") for question in asked] == [None, None, "date"]
    low = day_number("2024-03-01", "YYYY-MM-DD")
    assert asked[2]["low"] == low


def test_times_of_day_are_asked_for_where_training_had_them(clinic):
    document = json.loads((clinic / "m.json").read_text())
    (entry,) = [entry for entry in document["reading"] if entry["column"] == "day"]
    entry["date"] = "HH:MM"
    assert questions(document)[2]["date"] == "time"
    entry["date"] = "DD.MM.YYYY"
    document["reader"]["seen"][2][0]["high"] += 0.5
    assert questions(document)[2]["date"] == "datetime-local"


def spoken(clinic, *told):
    lines = "".join(json.dumps({"tell": one}) + "\n" for one in told)
    asked = CliRunner().invoke(
        app, ["ask", str(clinic / "m.json"), "--stdin"], input=lines
    )
    return [json.loads(line) for line in asked.stdout.splitlines()]


@pytest.mark.parametrize("day", ["05.03.2024", "2024-03-05", " 2024-03-05 ", 19787])
def test_a_program_tells_cells_as_the_table_has_them(clinic, day):
    *_, last = spoken(
        clinic,
        {"count": {"count": "9,000"}, "dose": ["12 mg"], "day": day},
    )
    policy = sensortree.load(clinic / "m.json").policy_
    row = {"count": 9000.0, "dose": 12.0, "day": day_number("2024-03-05", "YYYY-MM-DD")}
    assert row["day"] == 19787
    decision = policy.acquire(lambda sensor, _: [row[sensor]])
    assert last["decision"]["proba"] == decision.to_dict()["proba"]


def test_a_program_is_told_what_is_no_date_and_no_number(clinic):
    said = spoken(clinic, {"day": "March"}, {"dose": "1 g"}, {"dose": "much"})
    errors = [line["error"] for line in said if "error" in line]
    assert errors == [
        "column 'day': 'March' is not a date, DD.MM.YYYY.",
        "column 'dose': '1 g' is in another unit than 'mg'.",
        "column 'dose': 'much' is not a number.",
    ]


def test_what_is_missing_may_be_told_in_words(clinic):
    model = sensortree.load(clinic / "m.json")
    assert np.isnan(model.as_written("day", ["NA"])).all()
    assert np.isnan(model.as_written("dose", {"dose": "spilt"})["dose"])


def test_values_that_cannot_be_told_are_left_to_the_session(clinic):
    model = sensortree.load(clinic / "m.json")
    assert model.as_written("smell", "bad") == "bad"
    assert model.as_written("day", [1, 2]) == [1, 2]
    assert model.as_written("day", None) == [None]


def test_whole_numbers_are_dates_only_where_dates_are_written_so():
    assert day_of(20240305.0, "YYYYMMDD") == day_of("2024-03-05", "YYYYMMDD") == 19787
    assert day_of(20240305.0, "DD.MM.YYYY") is None
    assert day_of("2024-03-05", "HH:MM") is None


def test_a_person_types_cells_as_the_table_has_them(clinic):
    typed = "9,000\n12 mg\n05.03.2024\n"
    asked = CliRunner().invoke(
        app, ["ask", str(clinic / "m.json"), "--json"], input=typed
    )
    assert asked.exit_code == 0, asked.output
    policy = sensortree.load(clinic / "m.json").policy_
    row = {"count": 9000.0, "dose": 12.0, "day": day_number("2024-03-05", "YYYY-MM-DD")}
    decision = policy.acquire(lambda sensor, _: [row[sensor]])
    assert json.loads(asked.stdout)["proba"] == decision.to_dict()["proba"]


def test_cells_that_cannot_be_what_they_were_are_problems(clinic, tmp_path):
    data = tmp_path / "t.csv"
    data.write_text('count,dose,day\n"9,000",1 g,01.03.2024\n"9,000",9 mg,March\n')
    result = run("predict", clinic / "m.json", data, "--json", code=3)
    problems = [row["problem"] for row in json.loads(result.stdout)["rows"]]
    assert problems == [
        "column 'dose': '1 g' is in another unit than 'mg'",
        "column 'day': 'March' is not a date, DD.MM.YYYY",
    ]


def test_a_sensors_file_says_how_numbers_are_written(tmp_path):
    data, sensors = tmp_path / "t.csv", tmp_path / "s.toml"
    lines = [f"{1 + i % 7},{105 + i};{i % 2}" for i in range(40)]
    data.write_text("\n".join(["dose;y", *lines]))
    run("init", data, "--target", "y", "-o", sensors)
    assert '\ndecimal = ","' in sensors.read_text()
    plain = 'decimal = "."\nthousands = ","\n'
    otherwise = re.sub("decimal = .*\nthousands = .*\n", plain, sensors.read_text())
    for text, least in ((sensors.read_text(), 1.105), (otherwise, 1105)):
        sensors.write_text(text)
        file = read_sensors_file(sensors)
        problem = pose(read_data(data), file, None)
        assert problem.X.min() == least
