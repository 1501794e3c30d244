"""ScreensSet: bring settings into a stated state, then save."""

from typing import Any, ClassVar

from vlgym.types import Outcome

from .app import MOST, Builder, State, Value, Widget
from .screens import ScreenEnv
from .words import CITIES, Draws


class ScreensSet(ScreenEnv):
    """ScreensSet: bring settings and fields into a stated state, then save.

    Goal: change what the text states, nothing else, and press the button that saves.
    Observation: the screen of a drawn app, 448 x 896 pixels (`device="desktop"`: 1120 x 672).
    Actions: `click(x, y)`, 0 to 1000 over the picture (`coordinates="pixels"`: pixels;
        `marks=True`: `click 7`), `type("words")`, which replaces what the field with the caret
        holds, `scroll(up)`, `scroll(down)`, `back()`.
    Reward: 1 where all is right when it is saved, -0.01 a turn.
    Endings: terminated by saving; truncated after 40 turns.
    Success: all that is stated is so, and all else is as it was, when it is saved.
    Info: `right`, `spoiled`: stated values that are right, and others that were changed; `score`:
        the share of the shortest path, or after a wrong save half of the share `(right - spoiled) /
        stated`.
    Splits: train, val and test differ by seed; seeds share no app.
    Oracle: exact, a breadth-first search over the states of the app.
    References: Rawles et al., AndroidWorld, ICLR 2025.

    Options of `reset`: `level`, 0 to 4.

    Attributes:
        stated: how many values the text states.
        screens: how many screens of settings there are.
        controls: settings of a screen.
    """

    verbs = ("click", "type", "scroll", "back")
    rows, size = 6, "medium"
    stated: int = 2
    screens: int = 1
    controls: int = 7
    level_arguments: ClassVar = (
        {"stated": 1, "screens": 1, "controls": 7, "size": "large", "dialogs": 0},
        {"stated": 3, "screens": 1, "controls": 7, "size": "medium", "dialogs": 0},
        {"stated": 3, "screens": 2, "controls": 7, "size": "medium", "dialogs": 0},
        {"stated": 3, "screens": 2, "controls": 11, "size": "large", "dialogs": 0},
        {"stated": 4, "screens": 2, "controls": 11, "size": "large", "dialogs": 2},
    )

    def build(self, draws: Draws, builder: Builder) -> None:
        # One screen of settings, or several behind the first.
        root = builder.add_screen(self.app.name)
        pages, owners = [root], list[int]()
        if self.screens > 1:
            pages = [builder.add_screen(builder.title(), root) for _ in range(self.screens)]
            builder.fill(root, pages)
        for page in pages:
            before = len(self.app.values)
            blocks = builder.settings(self.controls)
            self.app.screens[page].blocks = [*blocks, builder.buttons()]
            builder.decorate(page)
            owners += [page] * (len(self.app.values) - before)

        # The goal: some values of each screen change, and the others stay.
        self.wanted = dict(enumerate(self.app.values))
        groups = [[at for at, owner in enumerate(owners) if owner == page] for page in pages]
        chosen: list[int] = []
        for number, group in enumerate(groups):
            chosen += draws.sample(group, self._share(number))
        self.goals = {at: self._draw_goal(draws, self.app.find(at)[1], at) for at in chosen}
        self.wanted.update(self.goals)
        others = draws.sample(CITIES, 7)
        words = [goal for goal in self.goals.values() if isinstance(goal, str)]
        self.spelled = sorted({*others, *words})
        self.sentences = [self._state_goal(self.app.find(at), goal) for at, goal in self.goals.items()]
        builder.add_dialogs(self.dialogs, pages)

    def _share(self, number: int) -> int:
        return self.stated // self.screens + (number < self.stated % self.screens)

    def _draw_goal(self, draws: Draws, widget: Widget, at: int) -> Value:
        value = self.app.values[at]
        if isinstance(value, str):
            return draws.pick(CITIES)
        if widget.kind in ("toggle", "check"):
            return 1 - value
        if widget.kind in ("radio", "dropdown"):
            return (value + draws.number(1, 3)) % 4
        low, high = max(0, value - 4), min(MOST, value + 4)
        return draws.pick([number for number in range(low, high + 1) if number != value])

    def _state_goal(self, place: tuple[int, Widget], goal: Value) -> str:
        screen, widget = place
        label = widget.of if widget.kind == "radio" else widget.label
        if widget.kind in ("toggle", "check"):
            words = "on" if goal else "off"
        elif widget.kind == "radio":
            group = [block[0] for block in self.app.screens[screen].blocks if block[0].value == widget.value]
            words = next(each.label for each in group if each.sets == goal)
        else:
            words = widget.options[int(goal)] if widget.options else str(goal)
        where = f' in "{self.app.screens[screen].title}"' if screen else ""
        return f'"{label}"{where}: {words}'

    def done(self, state: State, seen: int) -> bool:
        return state.saved and all(state.values[at] == goal for at, goal in self.wanted.items())

    def judge(self, action: str, feedback: str) -> Outcome:
        reward = super().judge(action, feedback).reward
        return Outcome(reward, terminated=self.state.saved, feedback=feedback)

    def words(self) -> list[str]:
        return self.spelled

    def task(self) -> str:
        return f"Set {'; '.join(self.sentences)}. Change nothing else, then save."

    def explain(self, action: str) -> str:
        if action.startswith("type"):
            return "the caret is in the field, so I write"
        return "it is the next thing to do" if action.startswith("click") else super().explain(action)

    def _count(self) -> tuple[int, int]:
        right = sum(self.state.values[at] == goal for at, goal in self.goals.items())
        others = [at for at in self.wanted if at not in self.goals]
        return right, sum(self.state.values[at] != self.wanted[at] for at in others)

    def score(self) -> float:
        if self.solved or not self.state.saved:
            return super().score()
        right, spoiled = self._count()
        return 0.5 * max(0, right - spoiled) / len(self.goals)

    def extra_info(self) -> dict[str, Any]:
        right, spoiled = self._count()
        return {"right": right, "spoiled": spoiled}
