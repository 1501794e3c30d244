"""Probes of sight for vlgym: questions that only the picture answers. Importing this imports no environment code."""

__version__ = "0.1.0"
