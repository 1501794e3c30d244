"""Policies meet environments, and the episodes are recorded.

`rollout` plays, `policies` are the scripted players, `trajectory` is the record. Models are in
`vlgym.endpoint` and `baselines`, other processes in `vlgym.env_groups`.
"""
