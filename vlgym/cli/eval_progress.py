"""Progress of `vlgym eval` on the terminal: a bar for each open part, a line for each finished one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..evaluation.meter import Meter
from ..evaluation.plan import Part
from ..evaluation.run import Watcher
from ..terminal import open_console, open_progress
from ..types import Reply, StepRecord


class EvaluationProgress(Watcher):
    """Bars on a terminal; elsewhere only the lines."""

    begun = False

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet

    def begin(self, parts: Sequence[Part], meter: Meter, already: set[tuple[str, int]]) -> None:
        """Show the bars."""
        self.begun, self.meter = True, meter
        self._bars = open_progress(open_console(stderr=True))
        self._totals = {part.key: part.total for part in parts}
        self._played = {key: sum(name == key for name, _ in already) for key in self._totals}
        self._won = dict.fromkeys(self._totals, 0)
        self._new = dict.fromkeys(self._totals, 0)
        self._tokens = dict.fromkeys(self._totals, 0)
        self._tasks: dict[str, Any] = {}
        self._bars.start()
        total, played = sum(self._totals.values()), sum(self._played.values())
        if played:
            self.say(f"{played} of {total} episodes are there already")
        self._all = self._bars.add_task("all", total=total, completed=played)

    def end(self) -> None:
        """Take the bars away."""
        self._bars.stop()

    def reply(self, reply: Reply, key: str) -> None:
        """Count a reply."""
        if reply.usage is not None:
            self._tokens[key] += reply.usage.prompt_tokens + reply.usage.completion_tokens
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(
                key.split("/")[-1], total=self._totals[key], completed=self._played[key]
            )
        self._bars.update(self._all, note=self._spent())

    def finish(self, episode: list[StepRecord]) -> None:
        """Count a finished episode."""
        key = episode[0].part
        self._played[key] += 1
        self._new[key] += 1
        self._won[key] += episode[-1].success
        self._bars.advance(self._all)
        if key in self._tasks:
            self._bars.update(self._tasks[key], advance=1, note=f"  {self._so_far(key)}")
        if self._played[key] == self._totals[key]:
            if key in self._tasks:
                self._bars.remove_task(self._tasks.pop(key))
            if not self.quiet:
                self.say(f"{key}: {self._played[key]} episodes done  {self._so_far(key)}")

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._bars.console.print(line)

    def _so_far(self, key: str) -> str:
        words = [f"success {self._won[key] / self._new[key]:.2f}" if self._new[key] else ""]
        if self._new[key] < self._played[key]:
            words[0] += " in this session"
        if self._tokens[key]:
            words.append(f"{self._tokens[key]:,} tokens")
        return "  ".join(words)

    def _spent(self) -> str:
        words = [f"{self.meter.replies:,} replies"]
        if self.meter.tokens:
            words.append(f"{self.meter.tokens:,} tokens")
        if self.meter.prices:
            words.append(f"${self.meter.cost:.4f}")
        return "  ".join(words)
