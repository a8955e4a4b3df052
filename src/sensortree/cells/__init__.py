"""What people write in the cells of a table, and what they mean.

::

    37,3   1.234,5   1 234   3,512     decimal commas and grouped digits, by column
    <0.5   >100                        a limit of the device; read as the limit
    12 mg  $1,200    5 %               one unit per column
    n/a    ?         -                 missing, as an empty cell is
    31.12.2024       31 Dec 2024       dates, in one form per column

    words      single cells: words for nothing, spellings, dates; and `ColumnFormat`, how a
               column was written
    numbers    a column of numbers: decimal marks, grouped digits, units, limits
"""
