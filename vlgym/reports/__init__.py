"""What is made of finished records: a run's report, the comparison of runs, the board of many.

Plays nothing and changes no record. What it computes is a function of run.json and metadata.jsonl alone, and of
registry.yaml's floors and ceilings. Needs what the extra `eval` installs.
"""
