"""Probes of sight for vlgym: questions that only the picture answers."""
