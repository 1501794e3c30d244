"""The same environments and records in other libraries: TRL, OpenEnv, verifiers, and data sets (Parquet, chats, Minari).

A module for each, which imports the library only where it needs it; `openenv` and `verifiers` need theirs to be imported.
"""
