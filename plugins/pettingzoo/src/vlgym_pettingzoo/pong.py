"""Pong on the emulated Atari 2600, for two; the oracle plays the ball's flight on a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from PIL import Image as Pictures

from vlgym.errors import NotInstalledError
from vlgym.games.multi import Round
from vlgym.registry.installing import how_to_install

from .base import Canvas, GameAtOnce, game_prompt

FRAMES = 10  # of the console in a decision; a second has 60
# The stick's code of an action, and the frames that it is held for.
STICKS = {"up": (3, 5), "up a bit": (3, 2), "stay": (0, 0), "down a bit": (4, 2), "down": (4, 5)}
SHIFT = {"up": -28, "up a bit": -10, "stay": 0, "down a bit": 10, "down": 28}  # rows of a paddle
WINNING = 3  # points
MODE = 4  # two players with the paddles, the first game of Video Olympics, as in PettingZoo

# Places in the console's memory; of seats 0 and 1. The ball's row is 0 while there is none.
BALL_X, BALL_Y, BALL_DOWN, BALL_LEFT, SCORES, PADDLES = 49, 54, 56, 58, (14, 13), (51, 50)
REACHED = (186, 70)  # columns of memory at which the ball is just before a seat's paddle
MIDDLE, HIGH, LOW = 6, 4, 9  # rows from a paddle to a ball that flies on straight, up or down

SIDES = ("green paddle on the right", "orange paddle on the left")
_FIELD, _GROUND = slice(34, 194), np.array((144, 72, 17), dtype=np.uint8)


class Pong(GameAtOnce):
    """Pong for two on the Atari 2600, by frames.

    Goal: be the first to three points: the ball leaves the field behind the other. Seat 0 has the
        green paddle on the right, seat 1 the orange one on the left.
    Observation: the console's field of 160 x 160 pixels, doubled; ball and paddles of 3 and 6
        frames before are faint. The text tells your side and the score, not where things are.
    Actions: `up`, `down` (28 rows of the field), `up a bit`, `down a bit` (10 rows), `stay`. Both
        act at once, and a decision is ten frames, a sixth of a second.
    Reward: 1 for a point, -1 for one of the other.
    Endings: terminated at three points; truncated after 100 turns of each.
    Success: this seat has more points when the game is over. `score` is its points.
    Splits: train, val and test differ by seed: the paddles' places, the serves, and the seat.
    Oracle: a planner: it goes where the ball will arrive, and meets it with the edge that sends it
        away from the other. `search`, the default opponent, follows the ball's present row.
    References: the console is Multi-Agent-ALE's (PettingZoo's `pong_v3`, mode 4), the cartridge
        Video Olympics of 1978. Ours: actions that hold, the height of serves by seed.
    """

    prompt = game_prompt("You are playing Pong.")
    zero_sum: ClassVar[bool] = True
    actions = tuple(STICKS)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._switch_on()

    def _switch_on(self) -> None:
        self._console = _load_console()
        self._power_on = self._console.cloneSystemState()

    def deal(self, rng: np.random.Generator, options: dict[str, Any]) -> None:
        if not hasattr(self, "_power_on"):  # it was closed
            self._switch_on()
        self.chance_rng, self.rounds = rng, 0
        self._console.restoreSystemState(self._power_on)
        begin = rng.integers(24, size=2)
        for frame in range(24):
            self._frame(tuple(4 if frame < until else 0 for until in begin))
        self._serve()

    def _frame(self, sticks: tuple[int, ...]) -> None:
        self._console.act(np.array(sticks, dtype=np.intc))
        self.memory = self._console.getRAM().astype(int)

    def _serve(self) -> None:
        """Press fire until there is a ball; draw its row and direction, and play a decision."""
        while self.memory[BALL_Y]:  # the old ball is there for some frames after a point
            self._frame((0, 0))
        fire = 0
        while not self.memory[BALL_Y]:
            self._frame((fire, fire))
            fire = 1 - fire
        self._console.setRAM(BALL_Y, int(self.chance_rng.integers(70, 180)))
        for place in (BALL_DOWN, BALL_LEFT):
            self._console.setRAM(place, int(self.chance_rng.choice((1, 255))))
        self._play("stay", "stay")

    def _play(self, *actions: str) -> None:
        """Play a decision's frames, or those up to a point."""
        before, self._seen = self.score_of(0) + self.score_of(1), []
        sticks = [STICKS[action] for action in actions]
        for frame in range(FRAMES):
            was = self.memory[BALL_X]
            self._frame(tuple(code if frame < length else 0 for code, length in sticks))
            self.to_right = bool(self.memory[BALL_X] > was)
            if frame % 3 == 0:
                self._seen.append(self._console.getScreenRGB()[_FIELD])
            if self.score_of(0) + self.score_of(1) > before:
                break
        self._advice: dict[int, str] = {}

    def score_of(self, seat: int) -> int:
        return int(self.memory[SCORES[seat]])

    def paddle_of(self, seat: int) -> int:
        return int(self.memory[PADDLES[seat]])

    @property
    def ball(self) -> tuple[int, int]:
        """Columns and rows from the field's middle to the ball, to the right and down."""
        return int(self.memory[BALL_X]) - 128, int(self.memory[BALL_Y]) - 126

    def ended(self) -> bool:
        return max(self.score_of(0), self.score_of(1)) == WINNING

    def make_moves(self, moves: Mapping[int, str]) -> Round:
        before = self.score_of(0) - self.score_of(1)
        self.rounds += 1
        self._play(moves[0], moves[1])
        gained = float(self.score_of(0) - self.score_of(1) - before)
        if gained and not self.ended():
            self._serve()
        return Round((gained, -gained), terminated=self.ended())

    def goal(self, seat: int) -> str:
        return (
            f"You are the {SIDES[seat]}. Paddles move up and down, and the ball bounces off them and off the upper and "
            "lower edge of the field. Who lets it out on the own side gives the other a point. "
            f"The first with {WINNING} points wins. The ball and the paddles are shown as they are now; faint ones are "
            "where they were 3 and 6 frames before. A turn is 10 frames. up and down move your paddle by 28 of the "
            "field's 160 rows, up a bit and down a bit by 10 (a paddle is 16 rows high). The ball flies off steeper "
            "where it meets the end of a paddle, and faster the longer a rally is. Both of you act at once."
        )

    def tell(self, seat: int) -> str:
        return f"You are the {SIDES[seat]}. Points: you {self.score_of(seat)}, other {self.score_of(1 - seat)}. "

    def won(self, seat: int) -> bool:
        over = self.ended() or self.rounds >= self.max_turns
        return over and self.score_of(seat) > self.score_of(1 - seat)

    def points(self, seat: int) -> float | None:
        return float(self.score_of(seat))

    def details(self, seat: int) -> dict[str, Any]:
        mine, its = self.score_of(seat), self.score_of(1 - seat)
        return {"side": ("right", "left")[seat], "points": mine, "lost": its}

    def advise(self, seat: int) -> str | None:
        """Go where the ball arrives; back to the middle while it flies away."""
        if seat not in self._advice:
            edge = HIGH if self.paddle_of(1 - seat) > 120 else LOW
            coming = self.to_right == (seat == 0)
            self._advice[seat] = self._towards(seat, self._foresee(seat) - edge if coming else 115)
        return self._advice[seat]

    def search(self, seat: int) -> str | None:
        return self._towards(seat, self.memory[BALL_Y] - MIDDLE)

    def _towards(self, seat: int, row: int) -> str:
        away = row - self.paddle_of(seat)
        return min(SHIFT, key=lambda action: (abs(away - SHIFT[action]), abs(SHIFT[action])))

    def _foresee(self, seat: int) -> int:
        """Return the ball's row when it reaches a seat's paddle, seen on a copy of the console."""
        before, state = self.memory, self._console.cloneState()
        for _ in range(200):
            self._frame((0, 0))
            beyond = (self.memory[BALL_X] - REACHED[seat]) * (1 - 2 * seat) >= 0
            if beyond or not self.memory[BALL_Y]:
                break
        row = int(self.memory[BALL_Y] or before[BALL_Y])
        self._console.restoreState(state)
        self._console.deleteState(state)
        self.memory = before
        return row

    def explain(self, seat: int, action: str) -> str:
        away = self.memory[BALL_Y] - MIDDLE - self.paddle_of(seat)
        coming = self.to_right == (seat == 0)
        place = f"{abs(away)} rows {'below' if away > 0 else 'above'} my paddle"
        return f"the ball is {place} and {'comes' if coming else 'flies away'}, so {action}"

    def paint(self, canvas: Canvas, seat: int) -> None:
        # The frames before are laid below the present one, fainter.
        field = np.full((160, 160, 3), _GROUND)
        weights = (0.35, 0.6, 1.0)[-len(self._seen) :]
        for frame, weight in zip(self._seen[-3:], weights, strict=True):
            drawn = (frame != _GROUND).any(axis=-1)
            field[drawn] = weight * frame[drawn] + (1 - weight) * _GROUND

        side, edge = round(320 * canvas.scale), round(32 * canvas.scale)
        picture = Pictures.fromarray(field).resize((side, side), Pictures.Resampling.NEAREST)
        canvas.picture.paste(picture, (edge, edge))
        canvas.text(f"{self.score_of(1)} : {self.score_of(0)}", 192, 17, 20, bold=0.4)
        for other, x in ((1, 64), (0, 312)):
            canvas.text("you" if other == seat else "other", x, 17, 16, bold=0.4)

    def close(self) -> None:
        if hasattr(self, "_power_on"):
            self._console.deleteState(self._power_on)
            del self._power_on
        super().close()


def _load_console() -> Any:
    """Return a console with the cartridge in it."""
    try:
        from ale_py.roms import get_rom_path
        from multi_agent_ale_py import ALEInterface
    except ModuleNotFoundError as error:
        command = how_to_install("vlgym-pettingzoo[pong]")
        raise NotInstalledError(f"Pong needs {error.name}, which is not installed: {command}") from None

    # Every console begins in the same state.
    ALEInterface.setLoggerMode(ALEInterface.Logger.Error)
    console = ALEInterface()
    console.setInt(b"random_seed", 0)
    console.setFloat(b"repeat_action_probability", 0.0)
    console.loadROM(str(get_rom_path("pong")))
    console.setMode(MODE)
    console.reset_game()
    return console
