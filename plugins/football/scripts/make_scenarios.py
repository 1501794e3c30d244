"""Write the 108 situations: move formations to the ball, then correct them until they are what their category says.

    python plugins/football/scripts/make_scenarios.py FOLDER

The names and the 9 x 3 x 4 plan are MageBench's; titles, places and tactics are ours. The same program always writes
the same files.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from vlgym_football.lanes import METRES, lane_clearance, open_lanes
from vlgym_football.names import CATEGORIES, REGIONS
from vlgym_football.scenario import FOLDER

Slots = list[tuple[str, float, float]]
_BACK_FOUR: Slots = [("LB", 0.12, -0.85), ("CB", 0.0, -0.3), ("CB", 0.0, 0.3), ("RB", 0.12, 0.85)]
FORMATIONS: dict[str, Slots] = {
    "4-4-2": [
        *_BACK_FOUR, ("LM", 0.5, -0.8), ("CM", 0.42, -0.25), ("CM", 0.48, 0.25), ("RM", 0.5, 0.8),
        ("CF", 0.9, -0.22), ("CF", 1.0, 0.22),
    ],
    "4-3-3": [
        *_BACK_FOUR, ("DM", 0.32, 0.0), ("CM", 0.5, -0.4), ("CM", 0.52, 0.4), ("LM", 0.88, -0.78), ("CF", 1.0, 0.0),
        ("RM", 0.88, 0.78),
    ],
    "3-5-2": [
        ("CB", 0.02, -0.5), ("CB", 0.0, 0.0), ("CB", 0.02, 0.5), ("LM", 0.5, -0.95), ("CM", 0.48, -0.35),
        ("DM", 0.32, 0.0), ("CM", 0.48, 0.35), ("RM", 0.5, 0.95), ("CF", 0.95, -0.2), ("CF", 1.0, 0.2),
    ],
    "4-2-3-1": [
        *_BACK_FOUR, ("DM", 0.35, -0.25), ("DM", 0.35, 0.25), ("LM", 0.7, -0.75), ("AM", 0.72, 0.0),
        ("RM", 0.7, 0.75), ("CF", 1.0, 0.05),
    ],
}  # fmt: skip
"""Outfield slots: role, depth (0 last line, 1 first line), width (-1 left, 1 right as one attacks)."""

CELLS_X = ((-0.93, -0.5), (-0.26, 0.26), (0.46, 0.88))
CELLS_Y = ((-0.37, -0.2), (-0.1, 0.1), (0.2, 0.37))

PERSONAL = (
    "closed in, every forward lane shadowed", "one against one, team-mates marked",
    "a gap to run into, no one to pass to", "cut off from the others by a screen",
)  # fmt: skip
TEAMWORK = (
    "pressed, two team-mates free ahead", "a triangle around the presser", "a switch of play is on",
    "runners on both sides",
)  # fmt: skip
REAL: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("playing out from the left back against a high press", "press"),
        ("a throw-in kept alive deep in our half", "regain"),
        ("the left back looks up after a goal kick", "block"), ("relieving our box after their corner", "siege"),
    ),
    (
        ("the left winger faces a set defence", "block"), ("a break down the left after an interception", "counter"),
        ("overload on the left, the full back overlaps", "overlap"), ("trapped at the left touchline", "press"),
    ),
    (
        ("at the left byline with runners in the box", "packed"), ("second ball after a half-cleared corner", "packed"),
        ("the winger cuts inside from the left", "block"), ("late break, the defence running back", "counter"),
    ),
    (
        ("build-up in front of our own box", "press"), ("the centre backs split against two forwards", "block"),
        ("the ball won on the edge of our box", "siege"), ("a midfielder drops between the centre backs", "regain"),
    ),
    (
        ("break through the middle, few defenders left", "counter"),
        ("build-up against a compact middle block", "block"),
        ("free between the lines", "overlap"), ("won back seconds after losing it", "regain"),
    ),
    (
        ("the striker with a packed box ahead", "packed"), ("a through ball on the edge of the box", "counter"),
        ("a rebound in front of the box", "regain"), ("patient attack against a deep block", "block"),
    ),
    (
        ("playing out from the right back against a high press", "press"),
        ("a throw-in kept alive on our right", "regain"),
        ("the right back finds time on the ball", "block"), ("relieving our box after their free kick", "siege"),
    ),
    (
        ("the right winger faces a set defence", "block"), ("a break down the right after a bad pass", "counter"),
        ("overload on the right, the full back overlaps", "overlap"), ("trapped at the right touchline", "press"),
    ),
    (
        ("at the right byline with runners in the box", "packed"), ("second ball after a short corner", "packed"),
        ("the winger cuts inside from the right", "block"), ("late break down the right", "counter"),
    ),
)  # fmt: skip
"""Nine regions, four situations each: title and the style that shapes the opponents."""

STYLES: dict[str, tuple[float, float, int]] = {
    "plain": (0.0, 0.85, 1),
    "press": (-0.2, 0.75, 3),
    "regain": (-0.05, 0.7, 2),
    "block": (0.08, 0.6, 1),
    "packed": (0.3, 0.5, 2),
    "siege": (-0.75, 0.6, 1),
    "counter": (-0.25, 1.0, 1),
    "overlap": (0.05, 0.75, 1),
}
"""Style -> shift of the opponents' block towards their own goal, its length, and how many of them press the ball."""


def lay_out(
    slots: Slots, back: float, front: float, centre_y: float, width: float, rng: np.random.Generator
) -> np.ndarray:
    """Return places `[10, 2]` of the outfield slots of a team that attacks to the right."""
    places = np.array([[back + depth * (front - back), centre_y + wide * width] for _, depth, wide in slots])
    return places + rng.normal(0, [0.022, 0.016], places.shape)


def spread(moving: np.ndarray, others: np.ndarray, least: float) -> None:
    """Push the rows of `moving` at least `least` metres away from each other and from `others`, within the pitch."""
    for _ in range(40):
        crowd = np.vstack([moving, others])
        for index in range(len(moving)):
            gap = (moving[index] - np.delete(crowd, index, axis=0)) * METRES
            far = np.hypot(*gap.T)
            near = int(np.argmin(far))
            if far[near] < least:
                away = gap[near] / far[near] if far[near] > 1e-9 else np.array([1.0, 0.0])
                moving[index] += away * (least - far[near] + 0.05) / METRES
        clip(moving)


def clip(places: np.ndarray) -> None:
    """Keep places on the pitch."""
    np.clip(places[:, 0], -0.96, 0.96, out=places[:, 0])
    np.clip(places[:, 1], -0.405, 0.405, out=places[:, 1])


def press(opponents: np.ndarray, ball: np.ndarray, count: int, rng: np.random.Generator) -> None:
    """Put the `count` nearest opponents 4 to 8 metres from the ball, on the goal side."""
    order = np.argsort(np.hypot(*((opponents - ball) * METRES).T))
    for rank, index in enumerate(order[:count]):
        angle = rng.uniform(-0.4, 0.4) + (0.0, 1.1, -1.1)[rank % 3]
        opponents[index] = ball + np.array([np.cos(angle), np.sin(angle)]) * rng.uniform(4.5, 8.0) / METRES


def shut_lanes(ball: np.ndarray, mates: np.ndarray, opponents: np.ndarray) -> None:
    """Stand an opponent in every open forward lane."""
    used: set[int] = set()
    for mate in open_lanes(ball, mates, opponents):
        spot = ball + 0.55 * (mates[mate] - ball)
        order = [int(i) for i in np.argsort(np.hypot(*((opponents - spot) * METRES).T)) if int(i) not in used]
        if order:
            opponents[order[0]] = spot
            used.add(order[0])


def open_two(ball: np.ndarray, mates: np.ndarray, opponents: np.ndarray, rng: np.random.Generator) -> None:
    """Bring two team-mates ahead within reach and clear their lanes."""
    order = np.argsort(np.hypot(*((mates - ball) * METRES).T))[:2]
    upper = -1.0 if ball[1] > -0.25 else 0.25
    lower = 1.0 if ball[1] < 0.25 else -0.25
    for index, side in zip(order, (upper, lower), strict=True):
        ahead = 1.0 if ball[0] < 0.7 else -0.15
        way = np.array([rng.uniform(5, 14) * ahead, side * rng.uniform(10, 16)])
        mates[index] = ball + way / METRES
    clip(mates)
    for _ in range(30):
        for mate in mates[order]:
            for index in range(len(opponents)):
                alone = opponents[index : index + 1]
                near = np.hypot(*((opponents[index] - mate) * METRES))
                if lane_clearance(ball, mate, alone) < 3.6 or near < 4.2:
                    opponents[index] += rng.normal(0, 3.0, 2) / METRES
        clip(opponents)


def compose(region: int, letter: str, number: int) -> dict[str, object]:
    """Return one situation: title, ball, and both teams as (role, x, y)."""
    for attempt in range(500):
        rng = np.random.default_rng([region, ord(letter), number, attempt])
        low_x, high_x = CELLS_X[(region - 1) % 3]
        low_y, high_y = CELLS_Y[(region - 1) // 3]
        ball = np.array([rng.uniform(low_x, high_x), rng.uniform(low_y, high_y)])
        style = REAL[region - 1][number - 1][1] if letter == "R" else "plain"
        title = {"P": PERSONAL[number - 1], "T": TEAMWORK[number - 1], "R": REAL[region - 1][number - 1][0]}[letter]
        shift, length, pressers = STYLES[style]
        ours, theirs = (FORMATIONS[sorted(FORMATIONS)[int(rng.integers(4))]] for _ in range(2))
        back = -0.48 + 0.4 * ball[0]
        mates = lay_out(ours, back, min(back + 0.95, 0.86), 0.25 * ball[1], 0.3, rng)
        line = float(np.clip(0.5 + 0.42 * ball[0] + shift, -0.35, 0.9))
        # The opponents are laid out in their own direction and turned round.
        opponents = -lay_out(theirs, -line, -line + length, -0.3 * ball[1], 0.27, rng)
        clip(mates)
        clip(opponents)
        carrier = int(np.argmin(np.hypot(*((mates - ball) * METRES).T)))
        mates[carrier] = ball + np.array([-0.011, 0.0])
        others = np.delete(mates, carrier, axis=0)
        if style == "overlap":
            full_back = int(np.argmin(np.hypot(*((others - ball) * METRES).T)))
            others[full_back] = (
                ball
                + np.array([4.0, np.sign(ball[1] or 1.0) * 5.0 if abs(ball[1]) < 0.3 else -np.sign(ball[1]) * 9.0])
                / METRES
            )
        press(opponents, ball, pressers, rng)
        if letter == "T":
            open_two(ball, others, opponents, rng)
        spread(others, mates[carrier : carrier + 1], 3.0)
        spread(opponents, np.vstack([others, mates[carrier : carrier + 1]]), 2.2)
        if letter == "P":
            shut_lanes(ball, others, opponents)
        mates = np.insert(others, carrier, mates[carrier], axis=0)
        if fits(letter, ball, carrier, mates, opponents):
            keeper_y = [0.02 * np.sign(ball[1]), 0.03 * np.sign(ball[1])]
            left = [
                ("GK", -0.97, keeper_y[0]),
                *((role, *place) for (role, _, _), place in zip(ours, mates, strict=True)),
            ]
            right = [
                ("GK", 0.975, keeper_y[1]),
                *((role, *place) for (role, _, _), place in zip(theirs, opponents, strict=True)),
            ]
            return {"title": title, "ball": ball, "left": left, "right": right}
    raise SystemExit(f"R{region}_{letter}_{number}: no attempt fits")


def fits(letter: str, ball: np.ndarray, carrier: int, mates: np.ndarray, opponents: np.ndarray) -> bool:
    """Whether the places, rounded as they are written, are what the category says."""
    ball, mates, opponents = np.round(ball, 3), np.round(mates, 3), np.round(opponents, 3)
    others = np.delete(mates, carrier, axis=0)
    crowd = np.vstack([mates, opponents])
    gaps = np.hypot(*((crowd[:, None] - crowd[None]) * METRES).transpose(2, 0, 1)) + 99 * np.eye(len(crowd))
    if gaps.min() < 1.5 or np.hypot(*((opponents - ball) * METRES).T).min() < 3.5:
        return False
    lanes = len(open_lanes(ball, others, opponents))
    return lanes == 0 if letter == "P" else lanes >= 2 if letter == "T" else True


def write(folder: Path) -> None:
    """Write one file for each region."""
    for region, place in enumerate(REGIONS, start=1):
        lines = [
            f"# Region {region}, {place}: 4 personal, 4 teamwork and 4 real situations. Made by "
            "scripts/make_scenarios.py.",
            "scenarios:",
        ]
        for letter in CATEGORIES:
            for number in range(1, 5):
                made = compose(region, letter, number)
                x, y = made["ball"]
                lines += [
                    f"  R{region}_{letter}_{number}:",
                    f"    title: {made['title']}",
                    f"    ball: [{x:.3f}, {y:.3f}]",
                ]
                for side in ("left", "right"):
                    lines.append(f"    {side}:")
                    lines += [f"      - [{role}, {px + 0.0:.3f}, {py + 0.0:.3f}]" for role, px, py in made[side]]
        (folder / f"region{region}.yaml").write_text(
            "\n".join(lines).replace("-0.000", "0.000") + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
