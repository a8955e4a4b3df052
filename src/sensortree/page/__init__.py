"""A model as one page that asks: the policy in JavaScript, and what stands around it.

Where to look::

    build ─► runnable    refuses what JavaScript cannot run, by name
      ├─► questions      what is asked for each column
      ├─► texts          the words of the page, by language (texts.json)
      └─► runtime.js     the policy: places, prices, sessions
          picture.js     the way through the tree
          page.js        screens, buttons, keys
          page.css       light, dark, phone, paper
"""

from sensortree.page.build import to_page

__all__ = ["to_page"]
