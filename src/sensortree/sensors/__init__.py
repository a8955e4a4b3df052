"""What can be bought, and what a mistake costs.

::

    sensor      `Sensor`, `SensorSet`, and what you declare, for one table
    table       rows of an array or a frame, and what each column holds
    transforms  fitted transformers as plain arrays
    seen        what training saw of a column, and what it never saw
    reader      turns a sensor's columns into numbers, with a transformer or without
    market      what may be bought after what; prices of each row
    loss        what a wrong answer, a probability or a distance costs
    referral    what it costs to hand an example over to a person
"""
