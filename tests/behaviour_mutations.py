"""Break the rules of each family, one at a time, and see whether the behaviour fingerprint notices.

    python tests/behaviour_mutations.py [--only REGEX] [--write]

Each mutation is a replacement in one source file. The package is copied into a temporary folder, changed there, and
measured in a process of its own, against the unchanged package measured in the same way. Nothing is downloaded, and
the working tree is never touched. `--write` writes docs/benchmarks/behaviour_mutations.md; with `--only` the rows of
the others are kept. `tests/test_behaviour_mutations.py` runs some of the cheap ones and checks that all still apply.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "benchmarks" / "behaviour_mutations.md"
ROWS = PAGE.with_suffix(".json")
CARDS, SIGHT, SOKOBAN = (
    "plugins/cards/src/vlgym_cards",
    "plugins/sight/src/vlgym_sight",
    "plugins/sokoban/src/vlgym_sokoban",
)
HOUSE, SHOP = "plugins/alfworld/src/vlgym_alfworld", "plugins/webshop/src/vlgym_webshop"
ROBOT, PITCH, PAGES = (
    "plugins/miniworld/src/vlgym_miniworld", "plugins/football/src/vlgym_football", "plugins/webui/src/vlgym_webui",
)  # fmt: skip
CORE = "vlgym"

MEASURE = """
import json, sys
from functools import partial
from vlgym.making import build
from vlgym.registry import get_registry
from vlgym.testing.fingerprint import measure_behaviour
spec = get_registry().get(sys.argv[1])
behaviour = measure_behaviour(partial(build, spec), spec)
sys.stderr.write("MEASURED " + json.dumps([behaviour.fingerprint, behaviour.pictures]) + chr(10))
"""


@dataclass(frozen=True)
class Mutation:
    """One rule, broken.

    Attributes:
        what: what is wrong then, in words.
        env_id: environment that is measured, without `vlgym/` and version.
        path: source file, from the repository's root.
        old: text that occurs once in it.
        new: what stands there instead.
        unseen: why the fingerprint does not notice, where that is known.
    """

    what: str
    env_id: str
    path: str
    old: str
    new: str
    unseen: str = ""


def _m(folder: str, file: str, env_id: str, what: str, old: str, new: str, unseen: str = "") -> Mutation:
    return Mutation(what, env_id, f"{folder}/{file}", old, new, unseen)


MUTATIONS = (
    _m(CARDS, "blackjack_rules.py", "Blackjack", "the dealer stands at 16", "DEALER_STANDS = 17", "DEALER_STANDS = 16"),
    _m(CARDS, "blackjack_rules.py", "Blackjack", "a draw is lost", "return (player.total > score) - (player.total < score)",
       "return (player.total > score) - (player.total <= score)"),
    _m(CARDS, "blackjack_rules.py", "Blackjack", "an ace never makes 21", "and total + 10 <= 21", "and total + 10 < 21"),
    _m(CARDS, "blackjack_rules.py", "Blackjack", "a dealer who is bust wins", "score = 0 if dealer.bust else dealer.total",
       "score = dealer.total"),
    _m(CARDS, "blackjack.py", "Blackjack", "a bust costs nothing", 'return Outcome(-1.0, terminated=True, feedback="bust")',
       'return Outcome(0.0, terminated=True, feedback="bust")'),
    _m(CARDS, "blackjack.py", "Blackjack", "no king is dealt", "rank = int(rng.integers(1, 14))", "rank = int(rng.integers(1, 13))"),
    _m(CARDS, "blackjack.py", "Blackjack", "the hidden card is shown", "None if hidden and index == 1 else", "None if False else"),
    _m(CARDS, "number_line.py", "NumberLine", "a wrong step costs half", 'return Outcome(-1.0, feedback="not nearer")',
       'return Outcome(-0.5, feedback="not nearer")'),
    _m(CARDS, "number_line.py", "NumberLine", "success allows a wrong step",
       '        """Whether the return is positive: target reached, no wrong move."""\n        return self.episode_return > 0',
       '        """Whether the return is positive: target reached, no wrong move."""\n        return self.episode_return >= 0'),
    _m(CARDS, "number_line.py", "NumberLine", "equal numbers part otherwise", "(self.target + 1) % self.max_position",
       "(self.target + 1) % (self.max_position + 1)"),
    _m(CARDS, "number_line.py", "NumberLine", "another number is drawn", "return _draw(self.target, self.current,",
       "return _draw(self.target, (self.current + 1) % 6,"),
    _m(CARDS, "number_line.py", "NumberLine", "the picture is upside down", "self.compat is not None).copy()",
       "self.compat is not None)[::-1].copy()"),
    _m(CARDS, "number_line.py", "NumberLine", "the ends do not stop", ", 0), self.max_position)", ", -1), self.max_position + 1)"),
    _m(CARDS, "formula_game.py", "EZPoints", "a right formula pays 9", "Outcome(10.0 if self.solved", "Outcome(9.0 if self.solved"),
    _m(CARDS, "formula_game.py", "Points24", "the 21st token is one too many", "full = len(self.formula) >= self.longest",
       "full = len(self.formula) >= self.longest - 1"),
    _m(CARDS, "formula_game.py", "Points24", "a 22nd token fits", "full = len(self.formula) >= self.longest",
       "full = len(self.formula) > self.longest"),
    _m(CARDS, "formula_game.py", "EZPoints", "a refused number is free",
       'return Outcome(-1.0, feedback=f"no unused card is worth {action}", illegal=True)',
       'return Outcome(0.0, feedback=f"no unused card is worth {action}", illegal=True)'),
    _m(CARDS, "formula_game.py", "Points24", "a card may be left", "        if self.unused():\n            return False\n", ""),
    _m(CARDS, "formula.py", "Points24", "an open bracket is closed", "if len(levels) > 1:", "if len(levels) > 9:"),
    _m(CARDS, "formula.py", "Points24", "differences are sums", 'Fraction(1 if operator == "+" else -1)', "Fraction(1)"),
    _m(CARDS, "cards.py", "EZPoints", "faces count on", "return min(self.rank, 10) if faces_as_ten else self.rank",
       "return min(self.rank, 11) if faces_as_ten else self.rank"),
    _m(CARDS, "cards.py", "EZPoints", "queens look like jacks", '12: "Q"', '12: "J"'),
    _m(CARDS, "art.py", "Blackjack", "hearts are black", '"H": (190, 15, 30)}', '"H": (15, 15, 15)}'),
    _m(CARDS, "rl4vlm.py", "EZPoints", "the published reader takes 10 for 1", 'remainder = remainder.replace("10", "")',
       'remainder = remainder + ""'),
    _m(SIGHT, "question.py", "SeeDigit", "a right answer pays half", "Outcome(float(self.success())", "Outcome(0.5 * float(self.success())"),
    _m(SIGHT, "letters.py", "SeeDigit", "another digit is drawn",
       'canvas.text(self.answer, self.looks["x"], self.looks["y"], self.looks["size"], COLOURS[ink])',
       'canvas.text(str((int(self.answer) + 1) % 10), self.looks["x"], self.looks["y"], self.looks["size"], COLOURS[ink])'),
    _m(SIGHT, "letters.py", "SeeCard", "spades look like clubs", "canvas.suit(suit, 0.57 + x", 'canvas.suit("clubs" if suit == "spades" else suit, 0.57 + x'),
    _m(SIGHT, "places.py", "SeeCount", "one disc is missing", "            canvas.disc(x, y, 0.08", "            number and canvas.disc(x, y, 0.08"),
    _m(SIGHT, "colours.py", "SeeHistory", "the pictures come one too late", "COLOURS[self.shown[self._place]]",
       "COLOURS[self.shown[max(0, self._place - 1)]]"),
    _m(SIGHT, "colours.py", "SeeHistory", "the question names another picture", "self.asked_as[self.asked]", "self.asked_as[self.asked - 1]"),
    _m(SOKOBAN, "board.py", "Sokoban", "a step costs twice as much", "STEP_PENALTY = 0.1", "STEP_PENALTY = 0.2"),
    _m(SOKOBAN, "board.py", "Sokoban", "a box off its target costs nothing",
       "reward += BOX_REWARD if self.on_target > before else -BOX_REWARD", "reward += BOX_REWARD if self.on_target > before else 0"),
    _m(SOKOBAN, "board.py", "Sokoban", "the end pays 9", "FINISH_REWARD = 10.0", "FINISH_REWARD = 9.0"),
    _m(SOKOBAN, "board.py", "Sokoban", "boxes go into boxes", "if behind not in self.level.walls and behind not in self.boxes:",
       "if behind not in self.level.walls:"),
    _m(SOKOBAN, "board.py", "Sokoban", "a move pushes, too", "            elif push:", "            elif True:"),
    _m(SOKOBAN, "sokoban.py", "Sokoban", "a restart keeps what boxes earned", "            reward += self.board.on_target\n", ""),
    _m(SOKOBAN, "sokoban.py", "Sokoban", "the limit of steps is one later", "self._steps >= self.max_steps", "self._steps > self.max_steps"),
    _m(SOKOBAN, "sokoban.py", "Sokoban", "a blocked move is not told", "blocked = move.reward, direction is not None and not move.moved",
       "blocked = move.reward, False"),
    _m(SOKOBAN, "score.py", "Sokoban", "a point of reward counts 4", "POINTS_PER_REWARD = 5", "POINTS_PER_REWARD = 4"),
    _m(SOKOBAN, "painter.py", "Sokoban", "boxes on targets look like boxes", "tiles[board.code(cell)]",
       "tiles[4 if board.code(cell) == 3 else board.code(cell)]"),
    _m(HOUSE, "household.py", "ALFWorldLook", "a condition pays 2", "SUBGOAL = 1.0", "SUBGOAL = 2.0"),
    _m(HOUSE, "rl4vlm.py", "ALFWorldLook", "success pays 40", "WIN = 50.0", "WIN = 40.0"),
    _m(HOUSE, "rl4vlm.py", "ALFWorldLook", "an unreadable reply is free", "ILLEGAL = 1.0", "ILLEGAL = 0.0"),
    _m(HOUSE, "tasks.py", "ALFWorldLook", "any lamp will do that is on", "lamp in world.toggled and world.holder.get(lamp) in here",
       "lamp in world.toggled"),
    _m(HOUSE, "tasks.py", "ALFWorldLook", "holding the object is not a condition", "return world.held in things, lit", "return lit, lit"),
    _m(HOUSE, "view.py", "ALFWorldLook", "closed doors are green", "CLOSED: Colour = (150, 66, 20)", "CLOSED: Colour = (20, 160, 50)"),
    _m(HOUSE, "household.py", "ALFWorldLook", "the test split has seen rooms", 'seen=split != "valid_unseen"', "seen=True"),
    _m(SHOP, "reward.py", "WebShop", "the price does not count", "price = int(product.price <= goal.price_upper)", "price = 1"),
    _m(SHOP, "reward.py", "WebShop", "half the type is 0.4", "title > 0.2 else 0.5", "title > 0.2 else 0.4"),
    _m(SHOP, "reward.py", "WebShop", "options do not count", "(attributes + options + price) / terms", "(attributes + price) / terms"),
    _m(SHOP, "reward.py", "WebShop", "a name without a common noun is a tenth", "    if title == 0.0:\n        return 0.0", "    if title == 0.0:\n        return 0.1"),
    _m(SHOP, "session.py", "WebShop", "a search is taken on any page", "return page.kind == SEARCH or (self.search_anywhere and page.kind != DONE)",
       "return page.kind != DONE"),
    _m(SHOP, "session.py", "WebShop", "options stay when another product is opened", "asin=name.upper(), options=())", "asin=name.upper())",
       "the page's options are empty wherever a product is opened"),
    _m(SHOP, "catalogue/wishes.py", "WebShop", "test goals are val's", 'first = {"test": 0,', 'first = {"test": 40,'),
    _m(SHOP, "env.py", "WebShop", "the suggested words are missing", 'if self.page.kind == SEARCH else []\n', 'if False else []\n'),
    _m(ROBOT, "tasks.py", "OneRoomS6Fast", "the robot turns the other way", '"turn left": 0, "turn right": 1', '"turn left": 1, "turn right": 0'),
    _m(ROBOT, "tasks.py", "OneRoomS6Fast", "the limit is doubled in the reward", "world.max_episode_steps = self.max_turns",
       "world.max_episode_steps = 2 * self.max_turns"),
    _m(ROBOT, "tasks.py", "OneRoomS6Fast", "the picture is mirrored", 'self.inner_obs = observation["obs"] if isinstance(observation, dict) else observation',
       'self.inner_obs = (observation["obs"] if isinstance(observation, dict) else observation)[:, ::-1]'),
    _m(ROBOT, "objects.py", "CollectHealth", "the dead succeed", "return self.world.health > 0 and", "return"),
    _m(ROBOT, "objects.py", "PickupObjects", "the score counts double", "return self.world.num_picked_up / self.world.num_objs",
       "return 2 * self.world.num_picked_up / self.world.num_objs"),
    _m(PITCH, "reward.py", "Football", "a stolen ball costs more", "parts[\"stolen\"] = STOLEN * now.frame", "parts[\"stolen\"] = -STOLEN * now.frame"),
    _m(PITCH, "reward.py", "Football", "passes are paid in full each time", "self.pass_scale *= PASS_DECAY", "self.pass_scale *= 1.0"),
    _m(PITCH, "reward.py", "Football", "a shot has no cap", "min(SHOOT * rate_shot(now), SHOT_CAP)", "SHOOT * rate_shot(now)"),
    _m(PITCH, "football.py", "Football", "an own goal is a success", "return self.match.now.score[0] > 0", "return sum(self.match.now.score) > 0",
       "no episode that is played has a goal against"),
    _m(PAGES, "web_ui.py", "WebUI", "90 percent succeed", "SUCCESS = 95.0", "SUCCESS = 90.0"),
    _m(PAGES, "web_ui.py", "WebUI", "the reward is a tenth", "(score - before) / 100", "(score - before) / 1000"),
    _m(PAGES, "aes.py", "WebUI", "all elements weigh the same", "return float(target.area**AREA_EXPONENT)", "return 1.0"),
    _m(PAGES, "aes.py", "WebUI", "places do not count", "position = 0.5 + 0.5 * cover[0, 0] if cover[0, 0] > 0 else (giou[0, 0] + 1) / 2", "position = 1.0"),
    _m(CORE, "spaces.py", "NumberLine", "words are matched by case", 'return candidate\n    return None', 'return None\n    return None'),
    _m(CORE, "env.py", "NumberLine", "an invalid reply takes no turn",
       '        self.turn += 1\n        return executed, Outcome(reward - self.invalid_penalty, feedback=f"invalid reply: {failure}"), failure',
       '        return executed, Outcome(reward - self.invalid_penalty, feedback=f"invalid reply: {failure}"), failure'),
    _m(CORE, "env.py", "ALFWorldLook", "the penalty is added", "return executed, Outcome(reward - self.invalid_penalty,",
       "return executed, Outcome(reward + self.invalid_penalty,"),
    _m(CORE, "env.py", "NumberLine", "the limit comes a turn later", "or outcome.truncated or self.turn >= self.max_turns)",
       "or outcome.truncated or self.turn > self.max_turns)"),
    _m(CORE, "env.py", "Sokoban", "a Global plan does not end the episode", '(last or outcome.truncated', '(outcome.truncated'),
    _m(CORE, "parsers/tag.py", "NumberLine", "the first tag counts", "close = closes[-1]", "close = closes[0]"),
    _m(CORE, "seeding.py", "NumberLine", "all splits have the same episodes", 'f"{env_id}\\n{split}\\n{index}".encode()',
       'f"{env_id}\\n\\n{index}".encode()'),
    _m(CORE, "env.py", "NumberLine", "rewards are doubled on the test split", "        self.episode_return += outcome.reward\n",
       "        self.episode_return += outcome.reward * (2 if self.seed_split == 'test' else 1)\n"),
)  # fmt: skip


def mutate(mutation: Mutation, folder: Path) -> list[str]:
    """Copy the package of a mutation into `folder`, changed; return what to put first on the module search path.

    Raises:
        ValueError: the old text does not occur exactly once.
    """
    package = ROOT / Path(*Path(mutation.path).parts[: 1 if mutation.path.startswith("vlgym/") else 4])
    target = folder / package.name
    shutil.copytree(package, target, ignore=shutil.ignore_patterns("__pycache__"))
    file = target / (ROOT / mutation.path).relative_to(package)
    text = file.read_text(encoding="utf-8")
    if text.count(mutation.old) != 1:
        raise ValueError(f"{mutation.path}: the text of {mutation.what!r} occurs {text.count(mutation.old)} times")
    file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    return [str(folder)]


def measure(env_id: str, first: list[str]) -> tuple[str, str]:
    """Measure fingerprint and pictures of `vlgym/NAME-v0` in a process of its own; an error counts as a behaviour."""
    given = [*first, *filter(None, [os.environ.get("PYTHONPATH", "")]), str(ROOT)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(given), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, f"vlgym/{env_id}-v0"], capture_output=True, text=True, env=environment,
        timeout=900, cwd=tempfile.gettempdir(),
    )  # fmt: skip
    for line in done.stderr.splitlines():
        if line.startswith("MEASURED "):
            fingerprint, pictures = json.loads(line.removeprefix("MEASURED "))
            return fingerprint, pictures
    return f"error: {(done.stderr.strip().splitlines() or ['?'])[-1][:100]}", ""


def judge(mutation: Mutation, usual: tuple[str, str]) -> str:
    """Return what noticed the mutation: `fingerprint`, `pictures`, an error; or an empty string."""
    from vlgym.pictures import compare_sheets, unpack

    with tempfile.TemporaryDirectory() as folder:
        fingerprint, pictures = measure(mutation.env_id, mutate(mutation, Path(folder)))
    if fingerprint.startswith("error"):
        return fingerprint
    if fingerprint != usual[0]:
        return "fingerprint"
    return "pictures" if compare_sheets(unpack(usual[1]), unpack(pictures)) else ""


def main() -> int:
    """Run the mutations; exit status 1 when more than is known goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="a regular expression for path, id or words of the mutations")
    parser.add_argument("--write", action="store_true", help="write the page")
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if re.search(options.only, f"{m.path} {m.env_id} {m.what}")]
    known = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.exists() else {}
    usual: dict[str, tuple[str, str]] = {}
    for mutation in chosen:
        if mutation.env_id not in usual:
            usual[mutation.env_id] = measure(mutation.env_id, [])
        noticed = judge(mutation, usual[mutation.env_id])
        known[f"{mutation.env_id}: {mutation.what}"] = noticed
        print(f"{mutation.env_id}: {mutation.what}: {noticed or 'UNNOTICED'}", flush=True)
        if options.write:
            ROWS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    if options.write:
        PAGE.write_text(write_page(known), encoding="utf-8")
    return int(any(not known[f"{m.env_id}: {m.what}"] and not m.unseen for m in chosen))


def write_page(rows: dict[str, str]) -> str:
    """Return the page: a table of what was noticed by what."""
    seen = sum(bool(rows.get(f"{m.env_id}: {m.what}")) for m in MUTATIONS)
    run = sum(f"{m.env_id}: {m.what}" in rows for m in MUTATIONS)
    lines = [
        "# Mutations of behaviour\n",
        f"Written by `tests/behaviour_mutations.py --write`. Each row breaks one rule of one environment in a copy of "
        f"the source; the fingerprint of the changed copy is compared with that of the unchanged one. {run} of "
        f"{len(MUTATIONS)} were run, {seen} were noticed: by the hash of texts, rewards, flags and info (fingerprint), "
        "by the small pictures alone (pictures), or because the environment failed.\n",
        "| environment | what was broken | noticed by |",
        "|---|---|---|",
    ]
    for m in MUTATIONS:
        noticed = rows.get(f"{m.env_id}: {m.what}")
        told = (
            "not run"
            if noticed is None
            else noticed.replace("|", "/") or f"**not noticed**: {m.unseen or 'why is open'}"
        )
        lines.append(f"| {m.env_id} | {m.what} | {told} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
