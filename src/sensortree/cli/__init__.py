"""The command line: parse, call the library, print.

::

    app          the program; errors are translated here and nowhere else
     ├─ preparing, learning, using, inspecting, asking, publishing, serving,
     │  ledgers, showing   the commands, a group in each
     │   ├─ problem      a data file and a sensors.toml, as what the library takes
     │   ├─ models       a model file, and tables in the form that it wants
     │   ├─ starter      the sensors.toml that `init` writes
     │   └─ doubts       what speaks against a column as a sensor
     ├─ sensors_file     reads sensors.toml
     ├─ data_file        columns of a CSV (csv_file) or Parquet file
     │   └─ layout           what somebody says about its cells
     ├─ options          arguments that several commands share
     └─ console          what is printed, written and shown meanwhile

Nothing heavy is imported before a command runs, so that ``--help`` is quick.
"""

from __future__ import annotations

import sys

EXTRA = (
    "sensortree: the command line needs typer and rich, which are not installed; run "
    "pip install 'sensortree[cli]'."
)


def main() -> None:
    """Run the program, or say what has to be installed for it."""
    try:
        from sensortree.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(EXTRA)
    app(prog_name="sensortree")
