"""Policies play a game of several agents against each other.

play        games of two policies: seats swapped, seeds paired, every turn recorded; a stopped one goes on
ratings     ratings with intervals (Bradley-Terry), from the results
tables      results as Markdown, JSON and a picture
"""

from .play import Result, Tournament, read_results
from .ratings import Rating, rate

__all__ = ["Rating", "Result", "Tournament", "rate", "read_results"]
