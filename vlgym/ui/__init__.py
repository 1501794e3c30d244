"""`vlgym ui`: one local web page to watch records, look at environments and play them.

`site` joins the routes of `runs`, `watch` and `play`; `guarding` checks requests; `games` plays
each game in a worker process. Nothing is loaded from elsewhere.
"""
