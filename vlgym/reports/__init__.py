"""Products of finished records: a run's report, the comparison of runs, the leaderboard.

Plays nothing and changes no record. Results depend on the records and on registry.yaml's bounds.
"""
