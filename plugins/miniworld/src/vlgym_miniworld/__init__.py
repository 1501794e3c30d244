"""MiniWorld's 23 three-dimensional environments as vlgym environments. See `plugin.py` for the list; nothing is
imported here.
"""
