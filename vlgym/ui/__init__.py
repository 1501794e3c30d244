"""`vlgym ui`: one local web page to watch records, look at environments and play them.

`site` puts it together from the routes of `runs`, `watch` and `play`. `guarding` checks who asks;
`games` plays each game in a worker process. Everything is served from here; nothing is loaded from elsewhere.
"""
