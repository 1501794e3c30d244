"""Model families, loading, and tiny models."""

from .. import get_ready

get_ready()
