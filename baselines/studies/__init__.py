"""Several runs compared."""

from .. import get_ready

get_ready()
