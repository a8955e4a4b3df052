"""The site: MyST pages, docstrings by numpydoc, examples by sphinx-gallery.

Nothing is fetched while it is built, and no page loads a script from elsewhere.
"""

import functools
import importlib
import inspect
import re
import warnings

import sensortree
import sensortree.results
from sensortree.program import SOLVERS, Solver

project = "sensortree"
author = "The sensortree developers"
copyright = author
version = release = sensortree.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = [
    "results/*",
    "includes/*",
    "_build",
    "_templates",
    "api/generated/.*",
]
highlight_language = "none"  # formulas in docstrings are not Python
default_role = "py:obj"  # docstrings write `name`; what has no page stays plain

html_theme = "pydata_sphinx_theme"
html_title = f"sensortree {release}"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["tables.css", "site.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "navbar_center": [],  # the side bar has all pages
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
html_sidebars = {"index": [], "**": ["all-pages"]}

# Every link is checked; `name` in a docstring, which may be a parameter, need not be one.
nitpicky = True
# What scikit-learn's own docstrings name is not on this site.
nitpick_ignore_regex = [
    ("py:obj", r"\w+"),
    ("py:(func|class)", r"sklearn\..*"),
    ("std:ref", r"r2_score"),
]
linkcheck_timeout, linkcheck_retries = 10, 2

autosummary_generate = True
autodoc_typehints = "none"  # types are in the Parameters sections
autodoc_class_signature = "mixed"
numpydoc_show_class_members = False  # the templates list members

# The gallery looks for names of examples in `sensortree` too, whatever these import.
warnings.filterwarnings("ignore", "sensortree", FutureWarning, "sphinx_gallery")

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 60,
    "abort_on_example_error": True,
    "capture_repr": (),
}


def solver_table() -> str:
    """Table of the registered solvers, each described by the file that knows it."""
    lines = ["| `solver=` | ridge penalty | needs | |", "|---|---|---|---|"]
    for name, solver in SOLVERS.items():
        ridge = "yes" if solver.ridge else "no"
        needs = f"`{solver.module}`" if solver.module else "nothing more"
        lines.append(f"| `{name}` | {ridge} | {needs} | {described(solver)} |")
    return "\n".join(lines)


def described(solver: Solver) -> str:
    """First sentence of the file in which a solver is written."""
    run = solver.run
    if isinstance(run, functools.partial):  # a general solver, on one of two forms
        run = run.args[-1]
    home = ".".join(run.__module__.split(".")[:4])  # sensortree.program.solvers.<name>
    text = inspect.getdoc(importlib.import_module(home)) or ""
    return " ".join(text.partition("\n\n")[0].split())


myst_enable_extensions = ["colon_fence", "deflist", "substitution"]
myst_heading_anchors = 3
myst_substitutions = {"solvers": solver_table()}


def for_the_page(app, what, name, obj, options, lines):
    """Say in reStructuredText what a docstring says in a terminal.

    Bars are bars, ``(n_features_in_,)`` is no link, public names are links, and an indented
    block above the first section is a formula, to be shown as it stands.
    """
    written, above_sections, in_formula = [], True, False
    for line in lines:
        if set(line) == {"-"}:
            above_sections = False
        indented = line.startswith("    ")
        begins = indented and written and not written[-1].strip()
        if above_sections and begins and not in_formula:
            before = next((text for text in reversed(written) if text.strip()), "")
            if not before.endswith("::"):
                written += ["::", ""]
            in_formula = True
        in_formula = in_formula and (indented or not line.strip())
        if not in_formula and "``" not in line and ">>>" not in line:
            line = re.sub(r"\((\w+)_([,)])", r"(\1\\_\2", line.replace("|", r"\|"))
            line = re.sub(r"(?<![`:])`(\w+)((?:\.\w+)?)`", linked, line)
        written.append(line)
    lines[:] = written


def linked(found):
    """A public name, or an attribute of one, with the module that has it as its target."""
    for module in (sensortree, sensortree.results):
        if found[1] in module.__all__:
            name = found[1] + found[2]
            return f"`{name} <{module.__name__}.{name}>`"
    return found[0]


def setup(app):
    app.connect("autodoc-process-docstring", for_the_page, priority=100)
