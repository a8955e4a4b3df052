"""What a policy did and why: figures, explanations, pages and pictures.

::

    interface         `PolicyAnswers`: the methods of every fitted or loaded model
    report            `CostReport`: what a policy spent on rows, and what it was worth;
                      the same rows answered by baselines, or with less to spend
    report_sums       answers and bills, added up by sensor, by place and by class;
                      shares, ranks and means, with intervals
    alone             columns that answer alone, and may be known only afterwards
    tables            reports and curves as text and in notebooks
    report_page       a report as an HTML page
    html              parts of these pages; `report.css` is their style
    rules             who takes a way of the tree, in one plain condition
    explanation       `Explanation`: one row's way, and why it went that way
    guarantee         `guarantee_error`: refer so many that the error keeps a promise
    tradeoff          `TradeoffCurve`: error against cost;  `Choice`: a point of it
    tradeoff_display  `TradeoffDisplay` and `LogDisplay`: error against cost, drawn
    chart             the same as an SVG picture
    tree_display      `TreeDisplay`: a tree with the share of rows on each way;
                      `PathDisplay`: one row's way through it
    sensor_use        `SensorUseDisplay`: which sensors are bought for which classes
    layout            where the boxes, edges and words of a tree go
    drawing           `Picture`: a layout drawn as SVG, or by matplotlib; `zoom.js`
                      lets the reader zoom
    words             how names, shares and prices are written
"""
