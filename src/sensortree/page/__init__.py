"""A model as one page that asks: the policy in JavaScript, and what stands around it.

::

    build          the page, its words by language (texts.json)
    questions      what is asked for each column; what JavaScript cannot run is refused
    runtime.js     the policy: places, prices, sessions
    picture.js     the way through the tree
    page.js        screens, buttons, keys
    page.css       light, dark, phone, paper
"""

from sensortree.page.build import to_page

__all__ = ["to_page"]
