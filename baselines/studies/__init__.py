"""Several runs compared. The folder is in no wheel: the studies run from a clone."""

from .. import get_ready

get_ready()
