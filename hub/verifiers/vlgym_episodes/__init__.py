"""verifiers finds a taskset and its environment by the names that this module exports."""

from vlgym.integrations.verifiers import Episodes, Play

__all__ = ["Episodes", "Play"]
