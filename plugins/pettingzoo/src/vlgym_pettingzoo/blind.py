"""The blind player of the poker games."""

from __future__ import annotations

from vlgym.sight.blind import BlindPlayer

BOLD = ("raise", "bet", "call")


class Bold(BlindPlayer):
    """Raises, bets or calls, and never folds; it wins more matches than random play."""

    name = "raises or calls"

    def choose(self, text: str, legal: tuple[str, ...]) -> str:
        """Return the boldest action."""
        return next(action for action in (*BOLD, *legal) if action in legal)
