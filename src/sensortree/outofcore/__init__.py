"""Learning from rows that do not fit into memory: on the workers of Dask, or in files.

::

    classifier   `DaskSensorTreeClassifier`
    partitions   rows as Dask gives them, one part at a time
    readings     all readings in an order that no partition decides, cut into chunks
    chunk        a chunk of rows, what makes it, and the log of what it was told
    learning     a sample's tree fitted to all chunks: leaf classifiers, decisions
    disk         `OnDisk`: chunks in files;  workers  `OnWorkers`: chunks on a cluster

What users import from here they import from `sensortree.dask`.
"""
