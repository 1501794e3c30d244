"""Gym-Cards: NumberLine, EZPoints, Points24 and Blackjack. This imports no environment code."""

__version__ = "0.1.0"
