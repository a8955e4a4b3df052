"""`Colours`: the colours of a picture of a tree, on light and on dark paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

# Of classes; apart for the colour-blind (Okabe, Ito) and on both papers. The last is for
# all the classes that have no colour of their own.
CLASSES = ("#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#A39A00", "#8C8C8C")


@dataclass(frozen=True)
class Colours:
    """What paper, letters and edges are drawn with.

    Attributes
    ----------
    paper : str, or red, green, blue, alpha
        Of the background.
    ink : str
        Of letters.
    buy, stop, unreached : str
        Of edges that buy, that do not, and that no row takes.
    """

    paper: Any
    ink: str
    buy: str
    stop: str
    unreached: str

    def of(self, kind: str) -> str:
        """Colour of a kind of edge."""
        colour: str = getattr(self, kind)
        return colour

    @staticmethod
    def on(paper: Any) -> Colours:
        """Colours for a figure whose background is given as red, green, blue, alpha."""
        red, green, blue, alpha = paper
        if not alpha:  # nobody knows what will be behind it
            return LIGHT
        lightness = 0.299 * red + 0.587 * green + 0.114 * blue
        return replace(DARK if lightness < 0.5 else LIGHT, paper=paper)


LIGHT = Colours("#FFFFFF", "#111111", "#0072B2", "#595959", "#949494")
DARK = Colours("#16191D", "#ECEFF2", "#5CB8F0", "#ADB3BA", "#757B82")
