"""`vlgym ui`: one local web page to watch records, look at environments and play them.

`site` puts it together from modules with `ROUTES`: `watch`, `side_by_side`, `gallery` and `play`. `guarding` checks who
asks; `game_process` plays each game in a process. Everything is served from here; nothing is loaded from elsewhere.
"""
