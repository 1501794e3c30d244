"""Speed of the shop: environment steps per second with one browser under several of them, and the time of a search.

    python tests/benchmarks/webshop_speed.py --envs 8 --seconds 15 --products 100000 --write

The search of 1,000 products in the same run is the yardstick for the large catalogue.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from report import finish, parse_write
from vlgym_webshop.catalogue.build import CatalogueSource, open_catalogue
from vlgym_webshop.services import get_services

from vlgym.making import make

ID = "vlgym/WebShop-v0"


def measure_steps(count: int, seconds: float, policy: str) -> str:
    """Return steps and photographs per second of `count` environments, stepped in turn by a policy."""
    envs = [make(ID) for _ in range(count)]
    for index, env in enumerate(envs):
        env.reset(seed=1000 + index)
        env.action_space.seed(index)
    browser = get_services().browser()
    photographs, steps, episodes = browser.photographs, 0, 0
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds:
        for env in envs:
            reply = env.action_space.sample() if policy == "random" else env.solve() or ""
            _, _, terminated, truncated, _ = env.step(reply)
            steps += 1
            if terminated or truncated:
                episodes += 1
                env.reset(seed=2000 + episodes)
    spent = time.perf_counter() - begun
    photographs = browser.photographs - photographs
    for env in envs:
        env.close()
    return f"{policy}: {steps / spent:.1f} steps/s, {photographs / spent:.1f} photographs/s, {episodes} episodes"


def measure_search(products: int) -> str:
    """Return build time and search times of a generated catalogue, instructions as queries."""
    begun = time.perf_counter()
    catalogue = open_catalogue(CatalogueSource(products=products))
    built = time.perf_counter() - begun
    times = []
    for number in range(200):
        query = catalogue.goal(number).instruction.lower()
        begun = time.perf_counter()
        catalogue.search(query)
        times.append(1000 * (time.perf_counter() - begun))
    return (
        f"{products} products: made or opened in {built:.1f} s; search median {np.median(times):.2f} ms, "
        f"95 % {np.percentile(times, 95):.2f} ms, slowest {max(times):.1f} ms"
    )


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--products", type=int, default=100_000)
    chosen = parse_write(__doc__ or "", parser)
    lines = [measure_steps(chosen.envs, chosen.seconds, policy) for policy in ("random", "oracle")]
    lines += [measure_search(products) for products in (1000, chosen.products)]
    body = f"{chosen.envs} environments, one browser, one process. Targets: 12 steps/s; a search under 30 ms.\n\n"
    body += "\n".join(f"- {line}" for line in lines)
    finish("webshop_speed", "The shop", body, ["vlgym-webshop", "selenium", "bm25s"], chosen.write)


if __name__ == "__main__":
    main()
