"""What would be published: built, compared with itself, installed and tried.

``python .ci/release_check.py`` builds the source distribution and the wheel into dist/,
asks twine whether the package index would take them, installs each into an empty
environment outside the checkout, and runs there the fifteen lines that README.md shows:
they have to print what it says that they print. The version, CHANGELOG.md and CITATION.cff
have to agree; for a release, [project.urls] has to say where the source is. The checks of
sp-repo-review have to pass. RELEASING.md says when to run this.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
URLS = ("Source", "Issues", "Changelog")  # what [project.urls] of a release names


def read(name: str) -> str:
    """Text of a file of the checkout."""
    return (ROOT / name).read_text(encoding="utf-8")


# what has to agree ------------------------------------------------------------------------


def disagreements(
    version: str, changelog: str, citation: str, urls: dict[str, str]
) -> Iterator[str]:
    """Sentences, one for each thing that says something else than the version.

    While ``_version.py`` says .dev, the changelog collects lines under "Unreleased". A
    release X.Y.Z has moved all of them below "X.Y.Z - YYYY-MM-DD", and CITATION.cff has
    that date. CITATION.cff says the version at all times.
    """
    cited = field(citation, "version")
    if cited != version:
        yield f"CITATION.cff cites version {cited}, _version.py says {version}."
    unreleased, *released = re.split(r"^## (?!Unreleased)", changelog, flags=re.M)
    if ".dev" in version:
        if "## Unreleased" not in unreleased:
            yield f"{version} is not released: CHANGELOG.md begins with '## Unreleased'."
        return
    if re.search(r"^- ", unreleased, re.M):
        yield f"CHANGELOG.md has lines under 'Unreleased': move them below {version}."
    newest = released[0].partition("\n")[0] if released else "nothing"
    date = field(citation, "date-released") or "YYYY-MM-DD"
    if newest != f"{version} - {date}":
        yield (
            f"CHANGELOG.md has {newest!r} as its newest release, where _version.py and "
            f"CITATION.cff say '{version} - {date}'."
        )
    for name in URLS:
        if name not in urls:
            yield f"[project.urls] in pyproject.toml has no {name!r}: set it to publish."


def field(citation: str, name: str) -> str | None:
    """Value of one of the plain lines of CITATION.cff."""
    found = re.search(rf'^{name}: "?([^"\n]+?)"?$', citation, re.M)
    return found and found[1]


def version_of(source: str) -> str:
    """Version that _version.py sets."""
    return re.findall(r'__version__ = "(.+)"', source)[0]


def fifteen_lines(readme: str) -> tuple[str, str]:
    """Give the first example of README.md, and what it is said to print."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", readme, re.M | re.S)
    example = next(text for language, text in blocks if language == "python")
    printed = next(text for language, text in blocks if language == "text")
    return example, printed


# what has to work -------------------------------------------------------------------------


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; it has to end well."""
    done = subprocess.run(command, cwd=cwd, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(
            f"{done.stdout}{done.stderr}{' '.join(map(str, command))} failed"
        )
    return done.stdout


def build() -> list[Path]:
    """The source distribution, and the wheel that is built from it."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST)
    files = sorted(DIST.iterdir())
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    return files


def printed_by(file: Path, example: str) -> str:
    """What an example prints where nothing but a built file is installed."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        run(sys.executable, "-m", "venv", folder)
        python = next(folder.glob("[bS]*/python*"))
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run(*pip, "--constraint", ROOT / "constraints.txt", file, cwd=folder)
        found = run(
            python, "-c", "import sensortree; print(sensortree.__file__)", cwd=folder
        )
        if not Path(found.strip()).is_relative_to(folder.resolve()):
            raise SystemExit(f"{file.name} was not tried: Python imported {found}")
        return run(python, "-W", "error", "-c", example, cwd=folder)


def main() -> None:
    """Check one thing after the other; end with a sentence at the first that fails."""
    version = version_of(read("src/sensortree/_version.py"))
    urls = tomllib.loads(read("pyproject.toml"))["project"]["urls"]
    wrong = list(
        disagreements(version, read("CHANGELOG.md"), read("CITATION.cff"), urls)
    )
    if wrong:
        raise SystemExit("\n".join(wrong))
    print(f"{version}: version, changelog and citation agree")
    run(sys.executable, "-m", "repo_review", ROOT)
    print("sp-repo-review: passes")
    example, expected = fifteen_lines(read("README.md"))
    files = build()
    for file in files:
        print(f"{file.name}: built, {file.stat().st_size // 1024} KiB, twine takes it")
    for file in files:
        printed = printed_by(file, example)
        if printed != expected:
            raise SystemExit(
                f"{file.name} prints\n{printed}for the example in README.md, which says\n"
                f"{expected}"
            )
        print(f"{file.name}: installed alone, it prints what README.md says")


if __name__ == "__main__":
    main()
