"""Play the papers' public programs and this suite on the same states, and print where they differ.

    make originals ORIGINALS=FOLDER

The folder holds work trees named NAME@COMMIT (`RL4VLM@...`, `VL-DAC@...`, `MageBench@...`); none of
their files is in this repository. What a program needs beyond its rules (a training library, a
picture's font) is replaced by a stand-in. A difference that `KNOWN` does not explain makes the exit
status 1. Programs that are not there are not compared.
"""

import argparse
import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import gymnasium
import numpy as np
from small import compare_alfworld, compare_boards, compare_sokoban, compare_webshop
from stand_ins import State, folder_package, load, stand_in

import vlgym

KNOWN: dict[str, str] = {}  # state (a regular expression) -> why ours differs there
SHOWN = 5  # differences printed of one comparison

# ---- RL4VLM's cards -----------------------------------------------------------------------------


def compare_cards(root: Path) -> Iterator[State]:
    """Play random and oracle's actions in the four card games: rewards, ends."""
    envs = root / "gym-cards" / "gym_cards" / "envs"
    for title, file, name, names in (
        ("NumberLine", "numberline", "NumberLineEnv", ["-", "+"]),
        ("EZPoints", "ezpoints", "EZPointEnv", []), ("Points24", "points", "Point24Env", []),
        ("Blackjack", "blackjack", "BlackjackEnv", ["stand", "hit"]),
    ):  # fmt: skip
        module = load(envs / f"{file}.py")
        kind = getattr(module, name)
        kind._get_observation = kind._get_obs = lambda self: None  # needs a font
        module.get_image = lambda name: SimpleNamespace(resize=lambda size: None)
        ours, theirs = vlgym.make(f"vlgym/{title}-v0", compat="rl4vlm"), kind()
        names = names or [*map(str, theirs.allowed_numbers), *module.OPERATOR_ACTIONS]
        draw = random.Random(0)
        for seed in range(100):
            ours.reset(seed=seed)
            theirs.reset(seed=seed)
            if title == "NumberLine":
                theirs.position = theirs.start_position = ours.current
                theirs.goal_position = ours.target
            elif title == "Blackjack":
                theirs.player, theirs.dealer = show(ours.player), show(ours.dealer)
            else:
                theirs.cards_num = [value for value, *_ in show(ours.cards)]
            ended = False
            while not ended:
                wise = ours.oracle() if seed % 2 else None
                action = wise if wise in names else draw.choice(names)
                _, reward, *over, _ = ours.step(json.dumps({"action": action}))
                if title == "Blackjack":  # they draw the cards that ours has drawn
                    drawn = [*show(ours.player)[len(theirs.player) :], *show(ours.dealer)[len(theirs.dealer) :]]
                    module.draw_card_with_info = lambda _, cards=drawn: cards.pop(0) if cards else (1, "", "")
                _, paid, *done, _ = theirs.step(names.index(action))
                yield f"{title} {seed}: {action}", (reward, *over), (float(paid), *map(bool, done))
                ended = any(over) or any(done)


def show(cards: Any) -> list[tuple[int, str, str]]:
    return [(min(card.rank, 10), "", "") for card in cards]


# ---- VL-DAC's MiniWorld ------------------------------------------------------------------------


def compare_miniworld(root: Path) -> Iterator[State]:
    """Play idly, and the oracle after ten idle turns, with VL-DAC's wrapper: rewards, ends."""
    vlgym.make("vlgym/OneRoom-v0", image_size=(16, 16)).reset(seed=0)  # opens OpenGL without a screen
    package = folder_package("vldac", root / "a2c_ppo_acktr" / "environments")
    monitor = {"stable_baselines3__common__monitor": stand_in(Monitor=None)}
    with patch.dict(sys.modules, {"vldac": package}):
        for name in ("base", "registry"):
            sys.modules[f"vldac.{name}"] = load(Path(package.__path__[0]) / f"{name}.py", "vldac")
        module = load(Path(package.__path__[0]) / "miniworld_env.py", "vldac", **monitor)
    # Ours adds a task to worlds without a reward.
    titles = {key[10:-3] for key in gymnasium.registry if key.startswith("MiniWorld-")}
    for title in sorted(titles - {"ThreeRooms", "RoomObjects"}):
        choice = {"shape": "box", "color": "blue"} if title == "Sign" else {}
        ours = vlgym.make(f"vlgym/{title}-v0", compat="vldac", image_size=(16, 16), **choice)
        theirs = module.MiniWorldEnvironment(env_name=f"MiniWorld-{title}-v0", seed=0, rank=0)
        for seed, idle in ((1, False), (2, False), (1, True)):
            ours.reset(seed=seed)
            theirs.reset(seed=seed)
            ended = False
            while not ended:
                action = ours.oracle() if not idle and ours.turn > 9 else "turn left"
                _, reward, *over, _ = ours.step(ours.parser.format([action or "turn left"]))
                _, paid, done, info = theirs.step(ours.actions[action or "turn left"])
                yield (
                    f"{title} {seed} {'idle' if idle else 'oracle'}, turn {ours.turn}",
                    (round(reward, 6), any(over)),
                    (round(theirs.process_reward(paid, done, info), 6), done),
                )  # fmt: skip
                ended = any(over) or done
        ours.close()
        theirs.env.close()


# ---- MageBench ----------------------------------------------------------------------------------


def compare_parsers(root: Path) -> Iterator[State]:
    """Read random replies by both flows of Sokoban."""
    from vlgym.parsers.headings import HeadingParser, HeadingPlanParser

    parts = (
        "# analyze", "### Analyze", "# action", "### Actions", "# Action", "Up", "Down", "up",
        "Left.", ",", "\n", " ",
    )  # fmt: skip
    draw, legal = random.Random(0), ("Up", "Down", "Left", "Right")
    with patch.dict(sys.modules, {"flow": folder_package("flow", root / "Flow")}):
        readers = (
            (load(root / "Flow" / "GlobalPlanning.py", "flow").GlobalPlan, HeadingPlanParser()),
            (load(root / "Flow" / "Online_HL_FBandSB.py", "flow", env=stand_in(), env__utils=stand_in(resize_image=None)
            ).OnlinePlan, HeadingParser()),
        )  # fmt: skip
    for _ in range(10_000):
        text = "".join(draw.choice(parts) for _ in range(draw.randint(0, 12)))
        for kind, parser in readers:
            read, _ = kind(None, SimpleNamespace(task="Sokoban"), None).parse(text)
            yield f"{parser.name} {text!r}", parser.parse(text, legal).actions, tuple(each["name"] for each in read)


def compare_decisions(root: Path) -> Iterator[State]:
    """Play random replies against random frames: actions of every frame."""
    from vlgym_football.engine import ACTION_SETS, Snapshot
    from vlgym_football.match import DecisionMaker

    base = {name: type(name, (), {}) for name in ("Action", "Observation", "State", "EnvTraj", "AgentEnvironment")}
    module = load(
        root / "env" / "football_env.py", "magebench_env",
        magebench_env=folder_package("magebench_env", root / "env"),
        magebench_env__base=stand_in(**base),
        magebench_env__utils=stand_in(resize_image=None, football_config=None),
        gfootball=stand_in(), gfootball__env=stand_in(football_env=None),
    )  # fmt: skip
    for seed in range(300):
        draw, rng = random.Random(seed), np.random.default_rng(seed)
        frames = [random_frame(draw, rng, Snapshot) for _ in range(400)]
        theirs, maker, ours, played = object.__new__(module.FootballEnv), DecisionMaker(published=True), [], []
        vars(theirs).update(
            use_adapting_render=True, use_bot=False, history_env_states=[], auto_acting=False,
            auto_acting_utils=None, MAX_AUTO_STEPS=10, MOVE_MIN_DISTANCE=0.01,
        )  # fmt: skip

        def take(action: Any, played: list[str] = played, theirs: Any = theirs, frames: Any = frames) -> Any:
            played.append(action.name.removeprefix("action_"))
            theirs.history_env_states.append(as_published(frames[len(played)]))
            return None, len(played) >= 300

        theirs._take_action = take
        while len(played) < 300:
            word = draw.choice(("right", "top", draw.choice(ACTION_SETS["16"])))
            reply, begun = maker.frames(word, frames[len(ours)]), len(ours)
            ours.append(next(reply))
            try:
                while len(ours) < 300:
                    ours.append(reply.send(frames[len(ours)]))
            except StopIteration:
                pass
            theirs.take_action(module.FootballAction(f"action_{word}"))
            yield f"decisions {seed}, frame {begun}: {word}", ours[begun:], played[begun:]
            if len(ours) != len(played):
                break


def random_frame(draw: random.Random, rng: np.random.Generator, kind: Any) -> Any:
    places = {"left": rng.uniform(-0.4, 0.4, (3, 2)), "right": rng.uniform(-0.4, 0.4, (3, 2))}
    paces = {f"{team}_velocity": rng.normal(0, 0.01, (3, 2)) for team in places}
    active = {f"{team}_active": np.ones(3, bool) for team in places}
    team = draw.choice((-1, 0, 0, 0, 1))
    return kind(
        frame=1, ball=rng.uniform(-0.4, 0.4, 3), ball_velocity=rng.normal(0, 0.01, 3), **places,
        **paces, **active, owner_team=team, owner=-1 if team == -1 else draw.choice((1, 1, 1, 2)),
        controlled=1, score=(0, 0), mode=0,
    )  # fmt: skip


def as_published(now: Any) -> dict[str, Any]:
    return {
        "ball": now.ball, "ball_direction": now.ball_velocity, "ball_owned_player": now.owner,
        "left_team": now.left, "left_team_direction": now.left_velocity, "right_team": now.right,
        "right_team_direction": now.right_velocity,
    }  # fmt: skip


def compare_aes(root: Path) -> Iterator[State]:
    """Score each shipped project with another style sheet, page by page."""
    from vlgym_webui.project import list_projects, load_project
    from vlgym_webui.studio import STUDIO

    module = load(root / "env" / "utils" / "WebUI_utils.py")
    chrome = module.webdriver.Chrome
    for name in list_projects():
        project, drivers = load_project(name), []
        code = {file: damage(text) if file == "style.css" else text for file, text in project.code().items()}

        def open_chrome(options: Any, project: Any = project, drivers: list[Any] = drivers) -> Any:
            options.add_argument("--hide-scrollbars")
            drivers.append(chrome(options=options))
            drivers[-1].execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": CLOCK})
            size = dict(zip(("width", "height"), project.viewport, strict=True))
            drivers[-1].execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride", {**size, "deviceScaleFactor": 1, "mobile": False}
            )
            return drivers[-1]

        with tempfile.TemporaryDirectory() as folder:
            for side, files in (("a", project.files), ("b", {**project.assets, **code})):
                for file, content in files.items():
                    place = Path(folder, side, file)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(content if isinstance(content, bytes) else content.encode())
            actions = Path(folder, "actions.py")
            actions.write_text(write_actions(project.interactions), "utf-8")
            with patch.object(module, "webdriver", SimpleNamespace(Chrome=open_chrome)):
                try:
                    _, pages = module.evaluate_different_interaction(
                        f"{folder}/a/index.html", f"{folder}/b/index.html", actions
                    )
                finally:
                    for driver in drivers:
                        driver.quit()
        ours = STUDIO.evaluate(project, code, compat=True).report.pages
        for number, (mine, (_, share)) in enumerate(zip(ours, pages.values(), strict=True)):
            theirs = 100 * share
            same = mine is not None and abs(mine - theirs) < 0.01
            yield f"AES {name}, page {number}", round(theirs, 3) if same else mine, round(theirs, 3)


CLOCK = """{
  let now = 0, made = 0;
  const open = new Map();
  const set = (deed, wait = 0, every = null) => (open.set(++made, {deed, at: now + wait, every}), made);
  window.setTimeout = (deed, wait) => set(deed, wait);
  window.setInterval = (deed, wait) => set(deed, wait, wait);
  window.clearTimeout = window.clearInterval = (number) => open.delete(number);
  window.moveClock = (length) => {
    for (const end = now + length; ; ) {
      const [number, next] = [...open].reduce((a, b) => (b[1].at < a[1].at ? b : a), [0, {at: Infinity}]);
      if (next.at > end) { now = end; return; }
      now = next.at;
      if (next.every === null) open.delete(number); else next.at += next.every;
      next.deed();
    }
  };
}"""
"""Timers that stand still until `moveClock`: their program plays the target first, whose timers
would run on while it plays the generated page."""


def damage(css: str) -> str:
    """Return a style sheet with other font sizes, distances, colours and corners."""
    for what, other in ((r"(font-size: )(\d+)", 2), (r"(padding: )(\d+)", 3)):
        css = re.sub(what, lambda match, more=other: f"{match[1]}{int(match[2]) + more}", css)
    return re.sub(r"border-radius: \d+px", "border-radius: 5px", css.replace("#f", "#d"))


def write_actions(interactions: Any) -> str:
    """Return our steps as MageBench's `actions.py`."""
    lines = ["import time", "from selenium.webdriver.common.action_chains import ActionChains as Do", "actions = []"]
    for number, interaction in enumerate(interactions):
        lines.append(f"def act{number}(driver):\n    own = driver.wrapped_driver")
        for step in interaction.steps:
            if step.kind == "wait":
                lines.append(f"    own.execute_script('moveClock({step.wait_ms})')")
                continue
            lines.append(
                f"    to = next(e for e in own.find_elements('css selector', {step.selector!r}) if e.is_displayed())"
            )
            deed = {"hover": "", "click": ".click()", "type": f".click().send_keys({step.text!r})"}[step.kind]
            lines.append(f"    Do(own).move_to_element(to){deed}.perform()\n    time.sleep(1.2)")
            lines.append("    own.execute_script('moveClock(1000)')")
        lines.append(f"actions.append(act{number})")
    return "\n".join(lines)


COMPARISONS: Mapping[str, tuple[str, str, Callable[[Path], Iterator[State]]]] = {
    "cards": ("cards", "RL4VLM", compare_cards),
    "miniworld": ("miniworld", "VL-DAC", compare_miniworld),
    "parsers": ("sokoban", "MageBench", compare_parsers),
    "decisions": ("football", "MageBench", compare_decisions),
    "aes": ("webui", "MageBench", compare_aes),
    "sokoban": ("sokoban", "MageBench", compare_sokoban),
    "alfworld-rl4vlm": ("alfworld", "RL4VLM", compare_alfworld),
    "alfworld-vldac": ("alfworld", "VL-DAC", compare_alfworld),
    "webshop": ("webshop", "WebShop", compare_webshop),
    "boards": ("pettingzoo", "", compare_boards),
}
WRITTEN = Path(__file__).parents[2] / "docs" / "studies" / "originals.json"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("originals", type=Path)
    parser.add_argument("--only", choices=COMPARISONS, nargs="*", default=list(COMPARISONS))
    parser.add_argument("--write", action="store_true", help="write docs/studies/originals.json")
    args = parser.parse_args()
    rows = json.loads(WRITTEN.read_text(encoding="utf-8")) if args.write and WRITTEN.is_file() else {}
    unexplained = 0
    for name in args.only:
        family, original, compare = COMPARISONS[name]
        roots = sorted(args.originals.glob(f"{original}@*")) or [Path(f"PettingZoo {version('pettingzoo')}")]
        if original and not roots[0].is_dir():
            print(f"{name}: not compared, {args.originals} holds no {original}@COMMIT")
            continue
        states, differ, others = 0, 0, 0
        for state, ours, theirs in compare(roots[0]):
            states += 1
            differ += ours != theirs
            if ours != theirs and not any(re.search(pattern, state) for pattern in KNOWN):
                others += 1
                if others <= SHOWN:
                    print(f"  {state}: ours {ours}, theirs {theirs}", flush=True)
        unexplained += others
        counts = f"{states} states, {differ - others} known differences, {others} others"
        print(f"{name}: {roots[0].name}, {counts}", flush=True)
        rows[name] = {"family": family, "original": roots[0].name, "states": states, "differ": differ}
        rows[name]["what"] = " ".join((compare.__doc__ or "").split()).removesuffix(".")
    if args.write:
        order = [name for name in COMPARISONS if name in rows]
        WRITTEN.write_text(json.dumps({name: rows[name] for name in order}, indent=1) + "\n", encoding="utf-8")
    return int(unexplained > 0)


if __name__ == "__main__":
    sys.exit(main())
