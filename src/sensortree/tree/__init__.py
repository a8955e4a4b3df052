"""What is known where, and the price of getting there.

::

    tree     `Leaf`, `Node`, `SensorTree`: path matrices P and N, routing, text form
    paths    what is known on the way to each vertex, and what the way costs
    forks    nodes that know the same, as one vertex with several ways out
"""
