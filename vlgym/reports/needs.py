"""The packages that reports need beside the core's, and what to say where one is missing."""

from functools import partial

from ..installing import import_extra

need = partial(import_extra, extra="eval", user="A report")
"""Imports a module of the extra `eval`."""
