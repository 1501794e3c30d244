"""The colour words of WebShop's reward: an option that contains one of them is compared as that word alone.

The words and their order are facts of the published reward (princeton-nlp/WebShop,
web_agent_site/engine/normalize.py): the first word of this alphabetic list that occurs anywhere in the text wins, so
`dark navy blue` is `blue` (b stands before d and n), and `shredded` is `red`.
"""

from __future__ import annotations

_WORDS = (
    "alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel "
    "camo caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry cream "
    "crystal dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green grey heather "
    "indigo ivory ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot midnight mint mocha "
    "multicolor mushroom mustard natural navy nude olive orange peach pewter pink plum purple rainbow red rose royal "
    "rust sand sapphire seashell silver skull slate steel stone stonewash sunflower tan taupe teal tiger turquoise "
    "violet walnut wheat white wine yellow"
)
COLOURS = tuple(_WORDS.split())


def normalize_colour(text: str) -> str:
    """Return the first colour word that `text` contains (also inside other words), or `text` itself."""
    return next((colour for colour in COLOURS if colour in text), text)
