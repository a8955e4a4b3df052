"""What can be bought, and what a mistake costs.

::

    sensor        `Sensor`, and the terms it is sold on
    sensor_set    `SensorSet`: all sensors of a problem, checked together
    declaration   what a user writes, as a sensor set
    table         rows of an array or a data frame
    columns       what a column holds: numbers, text, nothing
    by_type       columns as numbers where a sensor has no transformer
    reader        turns a sensor's columns into numbers, and price columns into prices
    transforms    fitted transformers as plain arrays
    encoders      those of categories
    levels        which of their columns are the levels of one category
    market        what may be bought after what, and at what price
    loss          what a wrong answer costs
    number_loss   what a number costs that is off
"""
