"""ScreensGo: reach a named screen."""

from __future__ import annotations

from typing import ClassVar

from .app import Builder, State
from .screens import ScreenEnv
from .words import Draws


class ScreensGo(ScreenEnv):
    """ScreensGo: reach a named screen (the form of GUI Exploration Lab).

    Goal: open the screen that the text names; the text tells the screens that lead to it.
    Observation: the screen of a drawn app, 448 x 896 pixels (`device="desktop"`: 1120 x 672).
    Actions: `click(x, y)`, 0 to 1000 over the picture (`coordinates="pixels"`: pixels; `marks=True`: `click 7`),
        `scroll(up)`, `scroll(down)`, `back()`.
    Reward: 1 for reaching the screen, -0.01 a turn. A click on nothing is told by feedback.
    Endings: terminated on the screen; truncated after 20 turns.
    Success: the screen is shown, whether or not a dialog lies over it.
    Splits: train, val and test differ by seed; seeds share no app.
    Oracle: exact, a breadth-first search over the states of the app.
    References: Yan et al., GUI Exploration Lab, 2025.

    Options of `reset`: `level`, 0 to 4.

    Attributes:
        depth: clicks between the first screen and the one that is asked for.
    """

    verbs = ("click", "scroll", "back")
    rows, size = 9, "medium"
    depth: int = 3
    level_arguments: ClassVar = (
        {"depth": 2, "rows": 8, "twins": 0, "size": "large", "dialogs": 0},
        {"depth": 3, "rows": 8, "twins": 0, "size": "large", "dialogs": 0},
        {"depth": 3, "rows": 9, "twins": 2, "size": "medium", "dialogs": 0},
        {"depth": 3, "rows": 20, "twins": 2, "size": "medium", "dialogs": 0},
        {"depth": 4, "rows": 24, "twins": 3, "size": "small", "dialogs": 3},
    )

    def build(self, draws: Draws, builder: Builder) -> None:
        twins, builder.twins = builder.twins, 0
        inner = builder.tree(self.depth, 3)
        self.target = draws.pick([at for at in inner if len(self.app.route(at)) == self.depth - 1])
        screens, title = self.app.screens, self.app.screens[self.target].title
        elsewhere = [at for at in inner if at not in (self.target, screens[self.target].parent)]
        for at in draws.sample(elsewhere, twins):
            rename_row(builder, at, title)
        builder.add_dialogs(self.dialogs, [at for at in inner if at != self.target])

    def done(self, state: State, seen: int) -> bool:
        return state.screen == self.target

    def task(self) -> str:
        route = self.app.route(self.target)
        steps = " of ".join(f'"{title}"' for title in route)
        return f'Open "{self.app.screens[self.target].title}", which lies in {steps}.'

    def explain(self, action: str) -> str:
        return "it leads there" if action.startswith("click") else super().explain(action)


def rename_row(builder: Builder, screen: int, title: str) -> None:
    """Give the first dead end of a screen the title of another one."""
    screens = builder.app.screens
    for at, block in enumerate(screens[screen].blocks):
        if block[0].kind == "row" and block[0].detail:
            screens[screen].blocks[at] = (block[0]._replace(label=title), *block[1:])
            screens[block[0].leads].title = title
            return
