"""Shortest paths over the states of an app, by breadth-first search over its actions."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .app import State, Value, go_back, press, write
from .layout import Element, Layout


class Move(NamedTuple):
    """One action: a click on an element (a slider's at `stop`), else a verb with its words."""

    element: Element | None = None
    stop: int = -1
    verb: str = "click"
    words: str = ""


Node = tuple[State, int]  # a state, and which facts were seen: one bit for each


def scroll(layout: Layout, state: State, way: str) -> tuple[State, str]:
    """Return the state after scrolling. Down shows what is lower."""
    last = len(layout.pages(state.screen)) - 1
    if layout.covered(state):
        return state, "nothing scrolls here"
    page = min(last, max(0, state.page + (1 if way == "down" else -1)))
    feedback = "scrolled" if page != state.page else f"this is the {'end' if page else 'top'}"
    return state._replace(page=page), feedback


def see(layout: Layout, state: State, seen: int, facts: Sequence[tuple[int, str]]) -> int:
    """Add the facts (number of the page, label) that a state shows to those that were seen."""
    if facts and not layout.covered(state):
        shown = {each.widget.label for each in layout.place(state) if each.widget.kind == "fact"}
        for at, (page, label) in enumerate(facts):
            seen |= (page == state.screen and label in shown) << at
    return seen


def list_moves(layout: Layout, state: State, wanted: Mapping[int, Value]) -> list[Move]:
    """Return the moves that may lie on a shortest path."""
    # Clicks that lead somewhere, or change a value towards the wanted one.
    moves = []
    for each in layout.place(state):
        widget = each.widget
        if not each.live:
            continue
        if widget.kind == "option" and widget.value < 0:
            if widget.sets == 0:
                moves.append(Move(each))
        elif widget.leads >= 0 or widget.saves:
            moves.append(Move(each))
        elif widget.value >= 0 and (goal := wanted.get(widget.value)) is not None:
            value = state.values[widget.value]
            if value != goal and _helps(widget.kind, widget.sets, value, goal):
                moves.append(Move(each, int(goal) if widget.kind == "slider" else -1))

    # Writing, scrolling and going back.
    goal = wanted.get(state.focus) if state.focus >= 0 else None
    if goal is not None and state.values[state.focus] != goal:
        moves.append(Move(verb="type", words=str(goal)))
    if not layout.covered(state):
        last = len(layout.pages(state.screen)) - 1
        moves += [Move(verb="scroll", words="down")] * (state.page < last)
        moves += [Move(verb="scroll", words="up")] * (state.page > 0)
        if layout.app.screens[state.screen].parent >= 0:
            moves.append(Move(verb="back"))
    return moves


def _helps(kind: str, sets: int, value: Value, goal: Value) -> bool:
    if kind in ("radio", "option"):
        return sets == goal
    if kind in ("minus", "plus") and isinstance(value, int) and isinstance(goal, int):
        return value > goal if kind == "minus" else value < goal
    return True


def make_move(layout: Layout, state: State, move: Move) -> tuple[State, str]:
    """Return the state after a move, and what happened in words."""
    if move.element is not None:
        return press(layout.app, state, move.element.widget, move.stop)
    if move.verb == "type":
        return write(state, move.words)
    if move.verb == "scroll":
        return scroll(layout, state, move.words)
    return go_back(layout.app, state)


def find_path(
    layout: Layout,
    start: Node,
    done: Callable[[State, int], bool],
    wanted: Mapping[int, Value],
    facts: Sequence[tuple[int, str]] = (),
) -> list[tuple[Node, Move]] | None:
    """Return a shortest list of moves to a node that is done, each with the node before it."""
    before: dict[Node, tuple[Node, Move] | None] = {start: None}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if done(*node):
            path = list[tuple[Node, Move]]()
            while (step := before[node]) is not None:
                path.append(step)
                node = step[0]
            return path[::-1]

        # The app is left alone after it was saved.
        state, seen = node
        if state.saved:
            continue
        ready = seen + 1 == 1 << len(facts)  # what is written must have been read
        for move in list_moves(layout, state, wanted if ready else {}):
            after, _ = make_move(layout, state, move)
            follower = after, see(layout, after, seen, facts)
            if follower not in before:
                before[follower] = node, move
                queue.append(follower)
    return None
