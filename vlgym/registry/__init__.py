"""Environments, installed or known from registry.yaml, and the way from an id to an environment."""

from .hookspecs import hookimpl
from .lookup import FIRST_PARTY, Registry, build_registry, get_registry, list_problems, normal_name
from .making import make

__all__ = [
    "FIRST_PARTY", "Registry", "build_registry", "get_registry", "hookimpl", "list_problems", "make", "normal_name",
]  # fmt: skip
