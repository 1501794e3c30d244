"""Sokoban for vlgym: `vlgym/Sokoban-v0`."""
