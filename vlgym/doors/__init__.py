"""The same environments and records in other libraries: trainers (TRL), servers (OpenEnv) and data sets (Parquet, chats, Minari).

A module for each, which imports the library only where it needs it; `openenv` needs its library to be imported.
"""
