"""The same environments and records in other libraries: TRL, OpenEnv, verifiers, SkyRL, VAGEN, Parquet, chats, Minari.

A module for each, which imports the library only where it needs it; `openenv`, `skyrl` and `verifiers` need theirs at
once.
"""
