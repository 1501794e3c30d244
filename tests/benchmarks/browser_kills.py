"""WebUI and WebShop: what an episode becomes when processes of its browser are killed at random moments.

    python tests/benchmarks/browser_kills.py --write

Each family plays an episode undisturbed, and then the same one again and again while a thread kills (or, one time in
ten, stops) a random process of the browser's family at random moments. Nothing that was rendered before is remembered.
An episode differs if any picture, text, reward, flag or info does.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil
from report import finish, parse_write, table

import vlgym

Episode = list[tuple[str, str, float, bool, bool, str]]
Blow = tuple[str, int]


def play(env: Any, forget: Callable[[], None], replies: list[str]) -> Episode:
    """Play an episode from seed 5 with nothing remembered; return everything that the player is told."""
    forget()
    observation, info = env.reset(seed=5)
    told = [tell(observation, 0.0, False, False, info)]
    for reply in replies:
        told.append(tell(*env.step(reply)))
        if told[-1][3] or told[-1][4]:
            break
    return told


def tell(observation: Any, reward: float, terminated: bool, truncated: bool, info: Any) -> tuple[Any, ...]:
    """Return a turn in a form that can be compared."""
    picture = hashlib.sha256(observation["image"].tobytes()).hexdigest()
    return picture, observation["text"], reward, terminated, truncated, json.dumps(info, sort_keys=True, default=str)


class Killer:
    """Kills processes of the browsers that this process has started, at random moments, until it is told to stop.

    Args:
        chance: where the moments, victims and signals come from.
        pause_s: longest pause between two blows.
        blows: how many at most.
    """

    def __init__(self, chance: random.Random, pause_s: float, blows: int) -> None:
        self.chance, self.pause_s, self.blows = chance, pause_s, blows
        self.done: list[Blow] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while len(self.done) < self.blows and not self._stop.wait(self.chance.uniform(0, self.pause_s)):
            family = [(kind, process) for process in psutil.Process().children(recursive=True)
                      if (kind := name_process(process))]  # fmt: skip
            if family:
                kind, victim = self.chance.choice(family)
                blow = signal.SIGSTOP if self.chance.random() < 0.1 else signal.SIGKILL
                with suppress(psutil.Error):
                    victim.send_signal(blow)
                    self.done.append((kind, int(blow)))


def name_process(process: psutil.Process) -> str:
    """Return what a process of a browser is, or an empty string for any other and for one that has ended."""
    with suppress(psutil.Error):
        if process.status() == psutil.STATUS_ZOMBIE:
            return ""
        words = process.cmdline()
        if any("chromedriver" in word for word in words[:1]):
            return "driver"
        if any("browser_keeper" in word for word in words[:6]):
            return "keeper"
        if any("chromium" in word for word in words[:1]):
            kind = next((word[len("--type=") :] for word in words if word.startswith("--type=")), "browser")
            return "network" if any("network.mojom" in word for word in words) else kind
    return ""


def name_difference(expected: Episode, told: Episode) -> str:
    """Return the first turn in which two episodes differ, and how."""
    names = ("picture", "text", "reward", "terminated", "truncated", "info")
    for turn, (one, other) in enumerate(zip(expected, told, strict=False)):
        for name, usual, found in zip(names, one, other, strict=True):
            if usual != found:
                return f"turn {turn}, {name}: {usual!r:.400} became {found!r:.400}"
    return f"{len(expected)} turns became {len(told)}"


def make_webui() -> tuple[Any, Callable[[], None], list[str]]:
    """Return an environment, what makes it forget, and replies of one episode."""
    from vlgym_webui.code_parser import write_action
    from vlgym_webui.studio import STUDIO

    def forget() -> None:
        STUDIO._evaluations._items.clear()

    env = vlgym.make("vlgym/WebUI-v0", project="tabs")
    env.reset(seed=5)
    code = env.unwrapped.project.code()
    plain = {"index.html": code["index.html"]}
    red = {"style.css": code["style.css"].replace("#2e3440", "#ff0000")}
    return env, forget, [write_action(plain), write_action(red), write_action(code)]


def make_webshop() -> tuple[Any, Callable[[], None], list[str]]:
    """Return an environment, what makes it forget, and replies of one episode."""
    from vlgym_webshop.services import get_services

    def forget() -> None:
        get_services().browser()._remembered.cache_clear()
        env.unwrapped._frame = None

    env = vlgym.make("vlgym/WebShop-v0")
    env.reset(seed=5)
    replies = []
    for _ in range(8):
        replies.append(env.unwrapped.solve())
        if env.step(replies[-1])[2]:
            break
    return env, forget, replies


def disturb(make: Callable[[], tuple[Any, Callable[[], None], list[str]]], kills: int, seed: int) -> dict[str, Any]:
    """Play until so many blows have fallen; return what was counted."""
    env, forget, replies = make()
    try:
        expected = play(env, forget, replies)
        begun = time.perf_counter()
        if play(env, forget, replies) != expected:
            raise SystemExit("two undisturbed episodes differ already")
        calm_s = time.perf_counter() - begun
        blows: Counter[str] = Counter()
        episodes = different = 0
        chance = random.Random(seed)
        while sum(blows.values()) < kills:
            with Killer(chance, max(0.2, calm_s), min(2, kills - sum(blows.values()))) as killer:
                told = play(env, forget, replies)
            if told != expected:
                different += 1
                print(f"differs after {killer.done}: {name_difference(expected, told)}", flush=True)
            episodes += 1
            blows.update(f"{kind} {'stopped' if blow == signal.SIGSTOP else 'killed'}" for kind, blow in killer.done)
        return {"episodes": episodes, "different": different, "blows": blows, "turns": len(expected)}
    finally:
        env.close()


def main() -> None:
    """Disturb both families and report."""
    parser = argparse.ArgumentParser(formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parse_write(__doc__ or "", parser)
    rows = []
    for name, make in (("WebUI", make_webui), ("WebShop", make_webshop)):
        result = disturb(make, chosen.kills, chosen.seed)
        victims = ", ".join(f"{what} {count}" for what, count in sorted(result["blows"].items()))
        rows.append([name, sum(result["blows"].values()), result["episodes"], result["different"], victims])
    body = (
        "One episode of each family, played again and again while a thread kills or stops a random process of its "
        "browser at random moments, at most two blows in an episode; pictures, texts, rewards, flags and infos are "
        "compared with those of an undisturbed episode.\n\n"
    )
    page = body + table(["family", "blows", "episodes", "episodes that differ", "victims"], rows)
    finish("browser_kills", "Browsers killed at random moments", page, ["vlgym", "selenium"], chosen.write)
    if any(row[3] for row in rows):
        raise SystemExit("an episode differs")


if __name__ == "__main__":
    main()
