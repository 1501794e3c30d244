"""Sampling replies and saying again how likely they are."""

from .. import get_ready

get_ready()
