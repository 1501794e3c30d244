"""vlgym's environments for OpenEnv's clients."""

from .client import VlgymEnv

__all__ = ["VlgymEnv"]
