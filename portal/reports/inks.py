"""The colours of agents and people in print: renderers of PDF give a page's CSS, and so its tokens, to no picture."""

from typing import Final

AGENT: Final = "#5443C0"
HUMAN: Final = "#B17F1D"
