"""Models as policies that anybody can evaluate: `hf:PATH-OR-NAME`."""

from .. import get_ready

get_ready()
