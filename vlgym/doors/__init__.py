"""The same environments and records in other libraries: trainers (TRL) and data sets (Parquet, chats, Minari).

A module for each, which imports the library only where it needs it.
"""
