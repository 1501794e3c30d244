"""Gym-Cards for vlgym: NumberLine, EZPoints, Points24 and Blackjack. Importing this imports no environment code."""

__version__ = "0.1.0"
