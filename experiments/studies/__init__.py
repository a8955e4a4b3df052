"""One study in each file: a grid, how a cell is measured, and its tables, as `STUDY`."""
