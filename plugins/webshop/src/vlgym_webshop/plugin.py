"""The plugin's card: a spec only. Importing this module imports no environment code."""

from dataclasses import replace

from vlgym import EnvSpec, hookimpl
from vlgym.env.probes import Probe

_BARE = ("@oracle", "@oracle", "@legal -1")
_PAGES = (
    "search[blue]", "click[next >]", "click[< prev]", "@legal 3", "click[description]",
    "click[< prev]", "click[features]", "click[back to search]", "search[ Soft  RED shoes ]",
    "search[again]",
)  # fmt: skip
_UNLISTED = ("@oracle",) * 3 + ("click[no such value]", "click[features]", "click[< prev]", "@legal -1")
_TWO_SEARCHES = ("search[lamp]", "search[chair]")


def _buy(place: int) -> tuple[str, ...]:
    return "@oracle", f"@legal {place}", "@legal -1"


WEB_SHOP = EnvSpec(
    id="vlgym/WebShop-v0",
    entry_point="vlgym_webshop.env:WebShop",
    summary="Search a web shop, compare products, choose options and buy what an instruction asks for.",
    family="webshop",
    max_turns=50,
    reward_range=(0.0, 1.0),
    success_rule="reward 1: right type, all attributes and options asked for, price within the limit",
    skills=("web", "reading", "search", "planning"),
    interaction=("a search or a click", "web pages", "pages seen"),
    difficulty="hard",
    history_turns=2,
    history_images=2,
    image_size=(672, 896),
    random_success_below=0.25,  # 3.8 % of the 500 test goals; a short test samples 30
    blind=("vlgym_webshop.blind:Shopper",),
    system_requirements=("chromium", "chromium-driver", "fonts-dejavu-core"),
    references=(
        "Yao et al., WebShop: Towards Scalable Real-World Web Interaction with Grounded Language Agents, NeurIPS 2022",
        "VL-DAC, arXiv 2508.04280",
    ),
    probes=(
        *(Probe("without the options", _BARE, {"goal": goal}) for goal in (0, 1)),
        *(Probe("another product", _buy(n + 2), {"goal": 9 * n}) for n in range(6)),
        Probe("above the price limit", ("@legal 0", "@legal 10", "@legal -1"), {"goal": 0}),
        Probe("half the type", ("@legal 0", "@legal 3", "@legal -1"), {"goal": 10}),
        Probe("pages of results, details, and back", _PAGES, {"goal": 600}),
        Probe("a search anywhere", _TWO_SEARCHES, {"goal": 1600}, {"search_anywhere": True}),
    ),
)

WEB_SHOP_1 = replace(
    WEB_SHOP,
    id="vlgym/WebShop-v1",
    summary=(
        "Search a web shop, tell look-alikes apart by price and features, and buy what an "
        "instruction asks for."
    ),
    kwargs={
        "products": 2400, "lookalikes": True, "suggest": False, "options_in_text": False,
        "partial_credit": False,
    },
    prompt_version=2,
    random_success_below=0.05,
    figure_episodes=100,
    blind=("vlgym_webshop.blind:Shopper", "vlgym_webshop.blind:Guesser"),
    levels=("a wish without options", "a wish with one option", "with two options", "with three options"),
    probes=(
        Probe("without the options", _BARE, {"goal": 0}),
        Probe("to the end", ("@oracle...",), {"goal": 1}),
        *(Probe("a look-alike", _buy(n + 2), {"goal": 9}) for n in range(4)),
        Probe("an option that is not listed, and one that there is not", _UNLISTED, {"goal": 600}),
        Probe("the form of a search", ("@legal 0", "@legal 0", "search[<a> non slip]"), {"goal": 1600}),
    ),
)  # fmt: skip
"""The version that needs the picture. The one before stays as it is, for comparison."""


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    """Return the family's specs."""
    return [replace(WEB_SHOP, replaced_by=WEB_SHOP_1.id), WEB_SHOP_1]
