"""Progress of `vlgym eval` on the terminal: a bar over all parts, and a line for each part that is finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..evaluation.meter import Meter
from ..evaluation.plan import Part
from ..evaluation.run import Watcher
from ..terminal import open_console, open_progress
from ..types import Reply, StepRecord


class EvaluationProgress(Watcher):
    """A bar on a terminal; elsewhere only the lines."""

    begun = False

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet
        self._won: Counter[str] = Counter()
        self._new: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()

    def begin(self, parts: Sequence[Part], meter: Meter, already: set[tuple[str, int]]) -> None:
        """Show the bar."""
        self.begun, self.meter = True, meter
        self._bars = open_progress(open_console(stderr=True))
        self._totals = {part.key: part.total for part in parts}
        self._played = Counter(name for name, _ in already)
        self._bars.start()
        total, played = sum(self._totals.values()), sum(self._played.values())
        if played:
            self.say(f"{played} of {total} episodes are there already")
        self._all = self._bars.add_task("episodes", total=total, completed=played)

    def end(self) -> None:
        """Take the bar away."""
        self._bars.stop()

    def reply(self, reply: Reply, key: str) -> None:
        """Count a reply."""
        if reply.usage is not None:
            self._tokens[key] += reply.usage.prompt_tokens + reply.usage.completion_tokens
        ended = self._new.total()
        words = [f"success {self._won.total() / ended:.2f}"] if ended else []
        words.append(f"{self.meter.replies:,} replies")
        words += [f"{self.meter.tokens:,} tokens"] if self.meter.tokens else []
        words += [f"${self.meter.cost:.4f}"] if self.meter.prices else []
        self._bars.update(self._all, note="  ".join(words))

    def finish(self, episode: list[StepRecord]) -> None:
        """Count a finished episode."""
        key = episode[0].part
        self._played[key] += 1
        self._new[key] += 1
        self._won[key] += episode[-1].success
        self._bars.advance(self._all)
        if self._played[key] == self._totals[key] and not self.quiet:
            here = " in this session" if self._new[key] < self._played[key] else ""
            tokens = f"  {self._tokens[key]:,} tokens" if self._tokens[key] else ""
            success = self._won[key] / self._new[key]
            self.say(f"{key}: {self._played[key]} episodes done  success {success:.2f}{here}{tokens}")

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._bars.console.print(line)
