"""Claims about the measures of the code base."""

from __future__ import annotations

from pathlib import Path

import pytest

import sensortree

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def house(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import house

    return house


SOURCE = """
@dataclass
class One:
    a: int

    @property
    def b(self): ...

    @b.setter
    def b(self, value): ...

    @classmethod
    def c(cls): ...

    async def d(self):
        def inside(): ...

class Two:
    c = One.c
"""


def test_methods_are_those_written_in_the_body_of_a_class(house):
    # One: b with its setter, c, d; neither what the dataclass adds nor what d defines.
    assert house.methods_by_class(SOURCE) == [("One", 3), ("Two", 0)]


def test_of_equal_sizes_the_first_by_name_is_told(house):
    assert house.largest([("a", 1), ("c", 2), ("b", 2)]) == "2 (b)"


def test_a_file_counts_when_a_function_of_it_is_entered(house, tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    space = {}
    for path, text in {
        one: "def f(): return [g() for _ in range(2)]\ndef h(): ...",
        two: "def g(): return 1\nclass K: ...",
    }.items():
        exec(compile(text, str(path), "exec"), space)
    codes, depth = house.entered(lambda: space["f"](), tmp_path)
    assert depth in (2, 3)  # f, its comprehension unless it is inlined, and g
    assert {Path(code.co_filename) for code in codes} == {one, two}
    assert {"f", "g"} <= {code.co_name for code in codes}
    assert "h" not in {code.co_name for code in codes}
    outside = house.entered(lambda: space["K"]() and space["h"](), tmp_path / "x")
    assert outside == (set(), 0)


def test_a_line_is_code_docstring_or_comment_or_empty(house, tmp_path):
    source = (
        '"""One.\n\nTwo."""\n\n# three\nx = "# four"\n\n\ndef f():\n    """Five."""\n'
    )
    size = house.size_of(source)
    assert size == house.Size(1, 10, 2, 4, 1, 0, 1)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "a.py").write_text(source)
    (tmp_path / "b.py").write_text("x = 1\n")
    found = house.rooms(tmp_path)
    assert set(found) == {"room", "(root)"}
    assert house.rooms_table(found).splitlines()[-1].startswith("| all | 2 | 11 | 3 |")


def test_the_classes_of_a_package_are_those_that_it_defines(house):
    found = house.classes_of(sensortree)
    assert sensortree.SensorTreeClassifier in found
    assert len(found) == len(set(found))
    assert found == house.ours_among(found, "sensortree")
    assert object not in found


def test_the_main_layers_are_those_of_the_whole_package(house):
    text = """
    [[tool.importlinter.contracts]]
    type = "layers"
    containers = ["p.inside"]
    layers = ["a"]
    [[tool.importlinter.contracts]]
    type = "layers"
    containers = ["p"]
    layers = ["b", "c | d"]
    """
    found = house.contracts(text)
    assert len(found) == 2
    assert house.main_layers(found, "p") == ["b", "c | d"]
    assert house.main_layers(found[:1], "p") == ["a"]


def test_flat_modules_are_in_the_root_of_the_package(house, tmp_path):
    (tmp_path / "inside").mkdir()
    for name in ("__init__", "__main__", "_version", "tree", "inside/leaf"):
        (tmp_path / f"{name}.py").touch()
    assert house.flat_modules(tmp_path) == ["_version", "tree"]
