"""Measures of the code base: how much of it a user's call passes, and how it is built.

    python -m benchmarks.house            tables in Markdown
    python -m benchmarks.house --rooms    only the size of each room, in a second
    python -m benchmarks.house --files    and the files that each call passes

Files are those under ``sensortree`` of which a function, method, lambda or comprehension is
entered in the main thread, on made-up rows with six sensors; a call has been made once
before it is measured, on objects of its own, so that nothing is imported while it is. What
is measured is the package that Python imports, and the ``pyproject.toml`` of its checkout.
"""

from __future__ import annotations

import argparse
import ast
import io
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import walk_packages
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import sensortree
from sensortree import SensorTreeClassifier, tradeoff_curve

PACKAGE = Path(sensortree.__file__).absolute().parent  # as code objects name it
ROOT = PACKAGE.parents[1]
DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef)


# what a call passes -----------------------------------------------------------------------


def made_up(n_rows: int = 150) -> tuple[Any, Any]:
    """Six columns; the first says which of the others the class depends on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6))
    y = np.where(X[:, 0] > 0, X[:, 1] + X[:, 2], X[:, 3] - X[:, 4]) > 0
    return X, y


def calls_of_a_user() -> dict[str, Callable[[], Callable[[], Any]]]:
    """What is measured, by name: a function that prepares, and returns the call."""
    X, y = made_up()

    def fit() -> Callable[[], Any]:
        return lambda: SensorTreeClassifier().fit(X, y)

    def predict() -> Callable[[], Any]:
        model = SensorTreeClassifier().fit(X, y)
        return lambda: model.predict(X)

    def session() -> Callable[[], Any]:
        model = SensorTreeClassifier().fit(X, y)
        return lambda: examine(model, X[0])

    def curve() -> Callable[[], Any]:
        return lambda: tradeoff_curve(SensorTreeClassifier(), X, y)

    def command() -> Callable[[], Any]:
        return lambda: fit_by_command(X, y)

    return {
        "fit": fit,
        "predict": predict,
        "a session: ask, tell, decision": session,
        "the command fit": command,
        "tradeoff_curve": curve,
    }


def examine(model: Any, row: Any) -> Any:
    """Ask for one sensor after the other, and decide."""
    columns = dict(zip(model.sensors_.names, model.sensors_.columns, strict=True))
    session = model.policy_.session()
    while (step := session.ask()) is not None:
        session.tell(step.sensor, row[list(columns[step.sensor])])
    return session.decision()


def fit_by_command(X: Any, y: Any) -> None:
    """Run ``sensortree fit`` in this process, on a CSV file in a folder of its own."""
    from sensortree.cli import main as program

    names = [f"x{column}" for column in range(X.shape[1])]
    rows = [[*names, "class"], *([*row, int(c)] for row, c in zip(X, y, strict=True))]
    sensors = [f'[sensors.{name}]\ncolumns = ["{name}"]\ncost = 1\n' for name in names]
    argv = ["sensortree", "fit", "rows.csv", "--sensors", "sensors.toml"]
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        lines = [",".join(map(str, row)) for row in rows]
        Path("rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        Path("sensors.toml").write_text(
            'target = "class"\n' + "".join(sensors), encoding="utf-8"
        )
        with (
            mock.patch.object(sys, "argv", argv),
            redirect_stdout(said),
            redirect_stderr(said),
        ):
            try:
                program()
            except SystemExit as left:
                if left.code:
                    raise RuntimeError(said.getvalue()) from left


def entered(call: Callable[[], Any], folder: Path) -> tuple[set[CodeType], int]:
    """Code under a folder that a call enters in the main thread, and how deep it nests."""
    inside: dict[CodeType, bool] = {}
    depth = deepest = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth, deepest
        if event not in ("call", "return"):
            return
        code = frame.f_code
        if code not in inside:
            inside[code] = Path(code.co_filename).is_relative_to(folder)
        if inside[code]:
            depth += 1 if event == "call" else -1
            deepest = max(deepest, depth)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return {code for code, ours in inside.items() if ours}, deepest


def passed() -> dict[str, tuple[set[CodeType], int]]:
    """What each call of a user enters, the second time that it is made."""
    found = {}
    for name, prepare in calls_of_a_user().items():
        prepare()()
        found[name] = entered(prepare(), PACKAGE)
    return found


def files_of(codes: Iterable[CodeType]) -> list[str]:
    """Distinct files of some code, from the package's root."""
    names = {Path(code.co_filename).relative_to(PACKAGE).as_posix() for code in codes}
    return sorted(names)


# how large the rooms are ------------------------------------------------------------------


class Size(NamedTuple):
    """How large some source is; lines are of code, of docstrings and of comments alone."""

    files: int = 0
    lines: int = 0
    code: int = 0
    docstring: int = 0
    comment: int = 0
    classes: int = 0
    functions: int = 0

    def __add__(self, other: Any) -> Size:
        return Size(*(a + b for a, b in zip(self, other, strict=True)))


def size_of(source: str) -> Size:
    """The size of one file."""
    tree, lines = ast.parse(source), source.splitlines()
    nodes = list(ast.walk(tree))
    documented = (ast.Module, ast.ClassDef, *DEFINES)
    docstring: set[int] = set()
    for node in nodes:
        if isinstance(node, documented) and ast.get_docstring(node) is not None:
            text = node.body[0]
            docstring |= set(range(text.lineno, (text.end_lineno or 0) + 1))
    comment = {k for k, line in enumerate(lines, 1) if line.strip().startswith("#")}
    comment -= docstring
    filled = {k for k, line in enumerate(lines, 1) if line.strip()}
    return Size(
        1,
        len(lines),
        len(filled - docstring - comment),
        len(docstring),
        len(comment),
        sum(isinstance(node, ast.ClassDef) for node in nodes),
        sum(isinstance(node, DEFINES) for node in nodes),
    )


def rooms(package: Path = PACKAGE) -> dict[str, Size]:
    """The size of each folder of a package, and of the files beside them."""
    found: dict[str, Size] = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        room = parts[0] if len(parts) > 1 else "(root)"
        found[room] = found.get(room, Size()) + size_of(path.read_text("utf-8"))
    return found


def rooms_table(found: Mapping[str, Size]) -> str:
    """Rooms as Markdown, the sum at the end."""
    heads = [name.replace("_", " ") for name in Size._fields]
    rows = [f"| room | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    every = {**found, "all": sum(found.values(), Size())}
    rows += [
        f"| {room} | {' | '.join(f'{n:,}' for n in size)} |"
        for room, size in every.items()
    ]
    return "\n".join(rows)


# how the package is built -----------------------------------------------------------------


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """A package's modules, those in its folders too."""
    yield package
    for found in walk_packages(package.__path__, f"{package.__name__}."):
        yield import_module(found.name)


def classes_of(package: ModuleType) -> list[type]:
    """Classes that a package's modules define, each once."""
    found: dict[type, None] = {}
    for module in modules_of(package):
        for value in vars(module).values():
            if isinstance(value, type) and value.__module__ == module.__name__:
                found[value] = None
    return list(found)


def ours_among(kinds: Iterable[type], package: str) -> list[type]:
    """Those of some classes that a package defines."""
    return [kind for kind in kinds if kind.__module__.partition(".")[0] == package]


def methods_by_class(source: str) -> list[tuple[str, int]]:
    """Each class of a source text, and the functions and properties in its body."""
    return [
        (node.name, len({part.name for part in node.body if isinstance(part, DEFINES)}))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
    ]


def largest(sizes: Iterable[tuple[str, int]]) -> str:
    """The largest size, and whose it is; of equals, the first by name."""
    name, size = min(sizes, key=lambda pair: (-pair[1], pair[0]))
    return f"{size} ({name})"


def contracts(pyproject: str) -> list[dict[str, Any]]:
    """The import-linter contracts of a pyproject.toml."""
    found: list[dict[str, Any]] = tomllib.loads(pyproject)["tool"]["importlinter"][
        "contracts"
    ]
    return found


def main_layers(found: Iterable[Mapping[str, Any]], package: str) -> list[str]:
    """Layers of the contract about a package as a whole; else of the first with layers."""
    layered = [c for c in found if c["type"] == "layers"]
    whole = [c for c in layered if package in c.get("containers", ())]
    layers: list[str] = (whole or layered)[0]["layers"]
    return layers


def flat_modules(package: Path) -> list[str]:
    """Modules in a package's root folder, but ``__init__`` and ``__main__``."""
    names = (path.stem for path in package.glob("*.py"))
    return sorted(name for name in names if not name.startswith("__"))


def measures() -> dict[str, str]:
    """How the package is built, a sentence and a number each."""
    kinds = classes_of(sensortree)
    sources = sorted(PACKAGE.rglob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in sources]
    methods = chain.from_iterable(map(methods_by_class, texts))
    found = contracts((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {
        "longest method resolution order, `object` included": largest(
            (kind.__name__, len(kind.__mro__)) for kind in kinds
        ),
        "the same, classes of ours only": largest(
            (kind.__name__, len(ours_among(kind.__mro__, "sensortree")))
            for kind in kinds
        ),
        "most methods and properties in the body of a class": largest(methods),
        "import-linter layers of the package": str(
            len(main_layers(found, "sensortree"))
        ),
        "import-linter contracts": str(len(found)),
        "parameters of SensorTreeClassifier": str(
            len(SensorTreeClassifier().get_params(deep=False))
        ),
        "names in `sensortree.__all__`": str(len(sensortree.__all__)),
        "commands, and their options": commands(),
        "pages of the docs": str(len(list((ROOT / "docs").glob("*.md")))),
        "files of tests": str(len(list((ROOT / "tests").glob("test_*.py")))),
        "modules in the package's root": str(len(flat_modules(PACKAGE))),
        "modules in all": str(len(sources)),
    }


def commands() -> str:
    """How many commands there are, and options of all of them together."""
    from typer.main import get_command

    from sensortree.cli.app import app

    def leaves(command: Any) -> Iterator[Any]:
        inner = getattr(command, "commands", None)
        if inner is None:
            yield command
        else:
            for each in inner.values():
                yield from leaves(each)

    every = list(leaves(get_command(app)))
    options = sum(
        parameter.param_type_name == "option"
        for command in every
        for parameter in command.params
    )
    return f"{len(every)}, {options}"


def table(
    found: Mapping[str, tuple[Iterable[CodeType], int]], built: Mapping[str, str]
) -> str:
    """What calls pass, and how the package is built, as Markdown."""
    rows = ["| call | files passed | functions entered | depth |", "|---|---|---|---|"]
    for name, (codes, depth) in found.items():
        entries = set(codes)
        files = len(files_of(entries))
        rows.append(f"| {name} | {files} | {len(entries)} | {depth} |")
    rows += ["", "| measure | |", "|---|---|"]
    rows += [f"| {name} | {value} |" for name, value in built.items()]
    return "\n".join(rows)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--files", action="store_true", help="list the files passed")
    parser.add_argument("--rooms", action="store_true", help="only the size of rooms")
    arguments = parser.parse_args(argv)
    print(rooms_table(rooms()))
    if arguments.rooms:
        return 0
    found = passed()
    print("\n" + table(found, measures()))
    if arguments.files:
        for name, (codes, _) in found.items():
            print(f"\n{name}: {', '.join(files_of(codes))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
