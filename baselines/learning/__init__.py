"""Shared parts of the learners."""

from .. import get_ready

get_ready()
