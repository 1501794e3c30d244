"""The plugin's card: a spec only. Importing this module imports no environment code."""

from __future__ import annotations

from vlgym.hookspecs import hookimpl
from vlgym.probes import Probe
from vlgym.spec import EnvSpec

WEB_SHOP = EnvSpec(
    id="vlgym/WebShop-v0",
    entry_point="vlgym_webshop.env:WebShop",
    summary="Search a web shop, compare products, choose options and buy what an instruction asks for.",
    family="webshop",
    max_turns=50,
    reward_range=(0.0, 1.0),
    success_rule="reward 1: right type, all attributes and options asked for, price within the limit",
    skills=("web", "reading", "search", "planning"),
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
        *(Probe("without the options", ("@oracle", "@oracle", "@legal -1"), {"goal": goal}) for goal in (0, 1)),
        *(Probe("another product", ("@oracle", f"@legal {n + 2}", "@legal -1"), {"goal": 9 * n}) for n in range(6)),
        Probe("above the price limit", ("@legal 0", "@legal 10", "@legal -1"), {"goal": 0}),
        Probe("half the type", ("@legal 0", "@legal 3", "@legal -1"), {"goal": 10}),
        Probe(
            "pages of results, details, and back",
            (
                "search[blue]",
                "click[next >]",
                "click[< prev]",
                "@legal 3",
                "click[description]",
                "click[< prev]",
                "click[features]",
                "click[back to search]",
                "search[ Soft  RED shoes ]",
                "search[again]",
            ),
            {"goal": 600},
        ),
        Probe("a search anywhere", ("search[lamp]", "search[chair]"), {"goal": 1600}, {"search_anywhere": True}),
    ),
)


@hookimpl
def vlgym_envs() -> list[EnvSpec]:
    """Return the family's specs."""
    return [WEB_SHOP]
