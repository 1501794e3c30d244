"""Comparisons without browser or 3D engine: Sokoban, ALFWorld, WebShop, PettingZoo's board
games."""

import itertools
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from rapidfuzz import fuzz, utils
from stand_ins import State, folder_package, load, stand_in

import vlgym
from vlgym.env.seeding import episode_seed

PLUGINS = Path(__file__).parents[2] / "plugins"


def compare_sokoban(root: Path) -> Iterator[State]:
    """Play random moves and oracle's: reward, end, board, score."""
    sys.path.insert(0, str(PLUGINS / "sokoban" / "tests"))
    from conftest import load_engine
    from test_rules import codes, load_into_package

    base = {name: type(name, (), {}) for name in ("Action", "State", "AgentEnvironment")}
    base["Observation"] = type("Observation", (), {"add_image": lambda self, image: None})
    module = load(
        root / "env" / "sokoban_env.py", "magebench_env",
        magebench_env=folder_package("magebench_env", root / "env"),
        magebench_env__base=stand_in(**base, EnvTraj=None),
        magebench_env__utils=stand_in(resize_image=None),
    )  # fmt: skip
    engine = getattr(load_engine, "__wrapped__", None) or load_engine._get_wrapped_function()
    package, names, draw = engine(), ("up", "down", "left", "right"), random.Random(0)
    for number in range(40):
        ours = vlgym.make("vlgym/Sokoban-v0", max_turns=100)
        ours.reset(seed=episode_seed("vlgym/Sokoban-v0", "test", number))
        level = ours.board.level
        best = load_into_package(package, level, 10**6)
        upper = sum(best.step(1 + "udlr".index(move.lower()))[1] for move in level.solution)
        theirs, first = object.__new__(module.SokobanEnv), module.SokobanState()
        trajectory = SimpleNamespace(last_state=first)
        trajectory.update = lambda kind, value, own=trajectory: kind == "state" and vars(own).update(last_state=value)
        vars(theirs).update(
            env=load_into_package(package, level, 10**6), trajectory=trajectory, done=False, upper_reward=upper
        )
        over = False
        while not over:
            wise = ours.oracle() if number % 2 and ours.turn > 5 else None
            action = wise or draw.choice(names)
            _, reward, terminated, truncated, info = ours.step(ours.parser.format([action]))
            _, done = theirs.take_action(module.SokobanAction(action.capitalize()))
            paid, over = trajectory.last_state.reward[-1], terminated or truncated
            yield (
                f"Sokoban {number}, turn {ours.turn}",
                (round(reward, 6), terminated, round(info["score"], 6), codes(ours.board).tolist()),
                (round(paid, 6), done, round(theirs.Evaluator()[0], 6), theirs.env.room_state.tolist()),
            )


def compare_alfworld(root: Path) -> Iterator[State]:
    """Read and pay commands, old commands and words, on TextWorld's engine as it is installed."""
    from vlgym_alfworld.drawn import TextGame

    file = next(root.glob("**/alf_utils.py"))
    lent = {"torchvision": stand_in(), "torchvision__transforms": stand_in(), "torch": stand_in(tensor=list)}
    thor = {"alfworld__agents__environment__alfred_thor_env": stand_in(AlfredThorEnv=dict)}
    module = load(file, **lent, **thor, alfworld=stand_in(), alfworld__agents=stand_in(environment=stand_in()),
                  alfworld__agents__environment=stand_in())  # fmt: skip
    reader, draw, theirs = object.__new__(module.AlfEnv), random.Random(0), TextGame(fast=False)
    compat = "vldac" if "VL-DAC" in str(root) else "rl4vlm"
    ours = vlgym.make("vlgym/ALFWorld-v0", compat=compat, max_turns=25)
    for number in range(12):
        ours.reset(seed=episode_seed("vlgym/ALFWorld-v0", "test", number))
        theirs.open(ours._game)
        over, seen = False, ["look"]
        while not over:
            wise = ours.oracle() if number % 2 else None
            action = wise or draw.choice([*theirs.commands, draw.choice(seen), "dance"])
            seen.append(action)
            reply = draw.choice((ours.parser.format([action]), f"I shall {action}"))
            (played,), legal = module.process_action(reader, [reply], theirs.commands)
            theirs.command(played)
            _, reward, over, truncated, info = ours.step(reply)
            rate = "goal_condition_success_rate"
            (paid,) = module.compute_reward({"won": [theirs.won], rate: [info[rate]]}, legal)
            yield (
                f"ALFWorld {number}, turn {ours.turn}: {reply}",
                (round(reward, 6), over, ours.legal_actions()),
                (round(paid, 6), theirs.won, theirs.commands),
            )  # fmt: skip
            over = over or truncated
    theirs.close()
    ours.close()


@dataclass(frozen=True)
class Token:
    text: str
    pos_: str = "NOUN"


def compare_webshop(root: Path) -> Iterator[State]:
    """Pay random purchases for random goals of the generated catalogue."""
    from vlgym_webshop.reward import score_purchase, tag_by_rule
    from vlgym_webshop.services import Shop, ShopConfig

    engine, files = root / "web_agent_site" / "engine", {}
    colours = load(engine / "normalize.py")
    ratio = stand_in(token_set_ratio=lambda a, b: round(fuzz.token_set_ratio(a, b, processor=utils.default_process)))
    files["spacy"] = stand_in(load=lambda name: lambda text: [Token(word) for word in tag_by_rule(text)])
    files |= {"thefuzz": stand_in(fuzz=ratio), "rich": stand_in(print=None), "web_agent_site": stand_in()}
    files |= {"web_agent_site__engine": stand_in(), "web_agent_site__engine__normalize": colours}
    module = load(engine / "goal.py", **files)
    catalogue, draw = Shop(ShopConfig()).catalogue, random.Random(0)
    for number in range(5000):
        goal = catalogue.goal(draw.randrange(catalogue.goals))
        asin = draw.choice((goal.asin, *(catalogue.goal(draw.randrange(catalogue.goals)).asin for _ in range(3))))
        product = catalogue.product(asin)
        chosen = {name: draw.choice(values) for name, values in product.options.items() if draw.random() < 0.8}
        bought = {
            "query": product.query, "product_category": product.product_category,
            "name": product.title, "Attributes": product.attributes, "Title": product.title,
            "BulletPoints": product.bullets, "Description": product.description,
        }  # fmt: skip
        wanted = {
            "query": goal.query, "product_category": goal.product_category, "name": goal.title,
            "attributes": goal.attributes, "goal_options": goal.options,
            "price_upper": goal.price_upper,
        }  # fmt: skip
        mine = score_purchase(product, chosen, goal)
        paid = float(module.get_reward(bought, wanted, product.price, chosen))
        yield f"WebShop {number}", round(mine.reward, 9), round(paid, 9)


def compare_boards(root: Path) -> Iterator[State]:
    """Play random moves of tic-tac-toe and Connect Four: legal moves, rewards, end."""
    from pettingzoo.classic import connect_four_v3, tictactoe_v3

    for title, kind, renumber in (
        ("TicTacToe", tictactoe_v3, lambda move: move % 3 * 3 + move // 3),
        ("ConnectFour", connect_four_v3, lambda move: move),
    ):
        ours, theirs = vlgym.aec_env(f"vlgym/{title}-v0", image_size=(96, 96)), kind.raw_env()
        draw = random.Random(0)
        for number in range(60):
            ours.reset(seed=number)
            theirs.reset(seed=number)
            game = ours.table.game
            for move in game.state.history():  # the drawn opening
                theirs.step(renumber(move))
            for turn in itertools.count(1):
                legal = [renumber(move) for move in game.state.legal_actions()]
                mask = np.flatnonzero(theirs.last()[0]["action_mask"]).tolist()
                yield f"{title} {number}, legal before turn {turn}", sorted(legal), mask
                move = draw.choice(game.state.legal_actions())
                ours.step(f"<action>{game.name_action(move)}</action>")
                theirs.step(renumber(move))
                both = [
                    ([env.rewards[x] for x in env.possible_agents], [*env.terminations.values()])
                    for env in (ours, theirs)
                ]
                yield f"{title} {number}, turn {turn}", *both
                if any(both[0][1]) or any(both[1][1]):
                    break
        ours.close()
