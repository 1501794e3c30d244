"""Product pictures: a drawing in the product's colour, as SVG text for a page. No file, no network."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from string import Template

from .drawings import DRAWINGS

_SHADES = {
    "alabaster": "#efece3", "beige": "#dcc9a3", "black": "#2b2d33", "blue": "#2f6fb7", "bronze": "#a4703a",
    "brown": "#7a4a2b", "burgundy": "#7d1f35", "charcoal": "#43484e", "chocolate": "#5d3620", "cocoa": "#6b3f2a",
    "coral": "#f1735e", "cream": "#f2e6c8", "denim": "#47678e", "gold": "#cfa53b", "gray": "#8a9097",
    "green": "#3b8a4c", "grey": "#8a9097", "honey": "#d79a3e", "ivory": "#efe8d4", "khaki": "#9f9462",
    "lavender": "#a68fd0", "mint": "#8fd3b6", "mustard": "#d3a321", "navy": "#22386b", "nude": "#d9b59a",
    "ocean": "#1f6f9c", "olive": "#76803a", "orange": "#d9742b", "peach": "#f4ab88", "pearl": "#e9e9ee",
    "pink": "#dd8fa5", "plum": "#713a68", "porcelain": "#efd6c4", "purple": "#7d55a8", "red": "#b92f35",
    "rose": "#d77a8a", "ruby": "#a3152e", "sage": "#93a588", "sand": "#d8c19a", "silver": "#b9bec6", "sky": "#77b3e0",
    "space": "#5a5f69", "tan": "#c49a6c", "teal": "#2a8482", "terracotta": "#c1633f", "turquoise": "#3bb6b0",
    "violet": "#8259b5", "walnut": "#6d4a30", "white": "#eceef1", "wine": "#7c1d36", "yellow": "#e6bf37",
    "vanilla": "#e8d8a0", "strawberry": "#d6465a", "caramel": "#b97a35", "lemon": "#e5d23f", "peanut": "#c28b45",
    "salt": "#6f9fc2", "barbecue": "#a33a22", "chili": "#c33b1e", "maple": "#a8642a", "sour": "#6f9a58",
    "peppermint": "#3f9d7a", "chamomile": "#d7b44b", "hibiscus": "#a82f5a", "earl": "#475a74", "ginger": "#cf9b3a",
    "dark": "#45291b", "medium": "#74462a", "light": "#a87449", "decaf": "#5d7a4a", "citrus": "#e39b2e",
    "cedar": "#7b5640",
}  # fmt: skip
_FALLBACK = ("#2f6fb7", "#b0413e", "#3f8f5b", "#8a5a9e", "#c78a2c", "#3d8c95", "#d06a8c", "#5c6470")
_COLOUR_AXES = ("color", "colour", "flavor", "shade", "scent", "roast")


def draw_picture(name: str, asin: str, options: dict[str, str]) -> str:
    """Return an SVG element for a product.

    Args:
        name: one of `DRAWINGS`; anything else is drawn as a box.
        asin: decides the colour where no option does, and makes the gradient's name unique on a page.
        options: option name -> value; the first that names a colour decides.
    """
    colour = next((shade for axis in _COLOUR_AXES if axis in options and (shade := _find_shade(options[axis]))), None)
    digest = hashlib.sha256(asin.encode()).digest()
    return _draw(
        name if name in DRAWINGS else "box",
        colour or _FALLBACK[digest[0] % len(_FALLBACK)],
        _FALLBACK[digest[1] % len(_FALLBACK)],
    )


def _find_shade(value: str) -> str | None:
    """Return the colour of the first word of `value` that names one (`navy blue` is navy), or `None`."""
    words = value.replace("|", " ").split()
    return next((_SHADES[word] for word in words if word in _SHADES), None)


@lru_cache(maxsize=2048)
def _draw(name: str, colour: str, accent: str) -> str:
    dark, light = _mix(colour, "#000000", 0.35), _mix(colour, "#ffffff", 0.45)
    upper, lower = _mix(colour, "#ffffff", 0.22), _mix(colour, "#000000", 0.16)
    gradient = f"g{name}{colour[1:]}"
    body = Template(DRAWINGS[name].replace("url(#g)", f"url(#{gradient})")).substitute(
        c=colour, d=dark, l=light, a=accent
    )
    fill = (
        f'<linearGradient id="{gradient}" x2="1" y2="1"><stop stop-color="{upper}"/>'
        f'<stop offset="1" stop-color="{lower}"/></linearGradient>'
    )
    shadow = '<ellipse cx="50" cy="94" rx="38" ry="4" fill="#000" opacity=".08"/>'
    opening = f'<svg viewBox="0 0 100 100" role="img" aria-label="{name}">'
    return f"{opening}<defs>{fill}</defs>{shadow}{body}</svg>"


def _mix(one: str, other: str, share: float) -> str:
    """Return the colour that lies `share` of the way from one to the other; both as `#rrggbb`."""
    pairs = zip(bytes.fromhex(one[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)
