"""Products of finished records: a run's report, the comparison of runs, the leaderboard.

Plays nothing and changes no record. Its results are a function of run.json, metadata.jsonl and the floors and ceilings
of registry.yaml.
"""
