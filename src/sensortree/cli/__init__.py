"""The command line: parse, call the library, print.

::

    app             the program: demo, reproduce; errors are translated here, nowhere else
     ├─ preparing       init, check: from a table to a declaration of sensors
     │   └─ column_warnings   what speaks against a column as a sensor
     ├─ learning        fit, curve, compare: what is learned from a table
     ├─ using           evaluate, report, predict, explain: what a model does with a table
     ├─ inspecting      inspect, plot, page, verify: what a model file holds
     ├─ asking          ask, serve, token, ledger: a model that asks, here or over HTTP
     │   ├─ problem         a table and a sensors.toml, as what the library takes
     │   └─ models          a model file, and tables and logs as it takes them
     ├─ sensors_file    reads sensors.toml
     ├─ tables          the columns of a CSV or Parquet file
     ├─ options         arguments that several commands share, grouped in `--help`
     └─ console         results, messages, files and the progress bar

Nothing heavy is imported before a command runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import sys

EXTRA = (
    "sensortree: the command line needs typer and rich, which are not installed; run "
    "pip install 'sensortree[cli]'."
)


def main() -> None:
    """Run the program, or name what must be installed first."""
    try:
        from sensortree.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(EXTRA)
    app(prog_name="sensortree")
