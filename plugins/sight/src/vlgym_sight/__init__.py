"""Probes of sight for vlgym: questions that only the picture answers."""

__version__ = "0.1.0"
