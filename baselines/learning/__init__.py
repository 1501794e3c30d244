"""What learners share."""

from .. import get_ready

get_ready()
