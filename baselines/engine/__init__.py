"""Sampling of replies, and their log-probabilities."""

from .. import get_ready

get_ready()
