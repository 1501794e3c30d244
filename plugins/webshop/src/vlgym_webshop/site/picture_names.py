"""Choose a drawing for a product that comes without one: the first key word found in its texts decides."""

from __future__ import annotations

_WORDS = (
    ("sandal", "sandal slipper flip-flop"), ("boot", "boot"), ("shoe", "shoe sneaker trainer loafer pump heel"),
    ("hoodie", "hoodie sweatshirt sweater pullover"), ("jacket", "jacket coat parka blazer"),
    ("dress", "dress skirt gown"), ("trousers", "trouser pants jeans shorts legging jogger"),
    ("socks", "sock stocking"), ("shirt", "shirt tee blouse top polo tank"), ("backpack", "backpack rucksack"),
    ("handbag", "handbag tote purse wallet bag"), ("watch", "watch"), ("glass", "protector screen film"),
    ("phone", "phone iphone galaxy case"), ("headphones", "headphone headset"), ("earbuds", "earbud earphone"),
    ("speaker", "speaker soundbar subwoofer"), ("keyboard", "keyboard laptop notebook computer"),
    ("camera", "camera lens camcorder tripod"), ("battery", "battery charger power"),
    ("cable", "cable cord adapter hdmi usb"), ("lamp", "lamp light bulb lantern sconce chandelier"),
    ("sofa", "sofa couch loveseat sectional futon"), ("chair", "chair stool bench recliner"),
    ("table", "table desk nightstand cabinet dresser shelf"), ("rug", "rug carpet mat"),
    ("curtain", "curtain drape blind"), ("sheets", "sheet bedding duvet blanket comforter bed mattress towel"),
    ("pillow", "pillow cushion"), ("frame", "frame art print poster canvas mirror"),
    ("basket", "basket bin hamper organizer box"), ("pan", "pan skillet pot cookware"), ("mug", "mug cup tumbler"),
    ("candle", "candle diffuser"), ("cookie", "cookie biscuit cake candy chocolate"), ("bar", "bar granola"),
    ("coffee", "coffee espresso"), ("teabox", "tea"), ("jar", "sauce jam butter spread honey salsa"),
    ("bag", "snack chips nut nuts mix popcorn cracker jerky cereal"), ("lipstick", "lipstick lip"),
    ("toothbrush", "toothbrush toothpaste floss"), ("brush", "brush comb"), ("perfume", "perfume cologne fragrance"),
    ("pump", "shampoo conditioner lotion wash soap"), ("pot", "cream moisturizer mask balm scrub powder"),
    ("tube", "foundation serum concealer sunscreen gel mascara"), ("bottle", "bottle flask water drink"),
)  # fmt: skip


def name_picture(text: str) -> str:
    """Return the name of a drawing for a product's texts; `box` where no key word occurs."""
    words = set(text.lower().replace("'", " ").replace(",", " ").split())
    words |= {word.removesuffix("s") for word in words}
    for name, keys in _WORDS:
        if words & set(keys.split()):
            return name
    return "box"
