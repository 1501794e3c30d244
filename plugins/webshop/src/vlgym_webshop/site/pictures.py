"""Product pictures: a drawing in the product's colour, as SVG text for a page. No file, no network."""

import hashlib
from functools import lru_cache
from string import Template

from ..catalogue.generate import load_data

_STROKE = 'stroke="$d" stroke-width="1.5" stroke-linejoin="round"'
_FALLBACK = (
    "#2f6fb7", "#b0413e", "#3f8f5b", "#8a5a9e", "#c78a2c", "#3d8c95", "#d06a8c", "#5c6470",
)  # fmt: skip
_COLOUR_AXES = ("color", "colour", "flavor", "shade", "scent", "roast")


def name_picture(text: str) -> str:
    """Return the name of a drawing for a product's texts; `box` where no key word occurs."""
    words = set(text.lower().replace("'", " ").replace(",", " ").split())
    words |= {word.removesuffix("s") for word in words}
    names = load_data("site/drawings.yaml")["words"].items()
    return next((name for name, keys in names if words & set(keys.split())), "box")


def draw_picture(name: str, asin: str, options: dict[str, str]) -> str:
    """Return an SVG element: a product's drawing in the colour of an option, else of its number."""
    shades = (_find_shade(options.get(axis, "")) for axis in _COLOUR_AXES)
    digest = hashlib.sha256(asin.encode()).digest()
    fallback, accent = (_FALLBACK[byte % len(_FALLBACK)] for byte in digest[:2])
    return _draw(name, next(filter(None, shades), fallback), accent)


def _find_shade(value: str) -> str:
    """Return the colour of the first word of `value` that names one (`navy blue` is navy), if any."""
    shades = load_data("site/drawings.yaml")["shades"]
    return next((shades[word] for word in value.replace("|", " ").split() if word in shades), "")


@lru_cache(maxsize=2048)
def _draw(name: str, colour: str, accent: str) -> str:
    drawings = load_data("site/drawings.yaml")["drawings"]
    name = name if name in drawings else "box"
    dark, light = _mix(colour, "#000000", 0.35), _mix(colour, "#ffffff", 0.45)
    upper, lower = _mix(colour, "#ffffff", 0.22), _mix(colour, "#000000", 0.16)

    # The gradient's name is unique on a page, where many products stand.
    gradient = f"g{name}{colour[1:]}"
    body = "".join(drawings[name]).replace("url(#g)", f"url(#{gradient})").replace("$s", _STROKE)
    body = Template(body).substitute(c=colour, d=dark, l=light, a=accent)
    fill = (
        f'<linearGradient id="{gradient}" x2="1" y2="1"><stop stop-color="{upper}"/>'
        f'<stop offset="1" stop-color="{lower}"/></linearGradient>'
    )
    shadow = '<ellipse cx="50" cy="94" rx="38" ry="4" fill="#000" opacity=".08"/>'
    opening = f'<svg viewBox="0 0 100 100" role="img" aria-label="{name}">'
    return f"{opening}<defs>{fill}</defs>{shadow}{body}</svg>"


def _mix(one: str, other: str, share: float) -> str:
    """Return the colour `share` of the way from one to the other; both as `#rrggbb`."""
    pairs = zip(bytes.fromhex(one[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)
