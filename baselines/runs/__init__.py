"""Folders, checkpoints, logs and processes of runs."""

from .. import get_ready

get_ready()
