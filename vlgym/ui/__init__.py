"""`vlgym ui`: one local web page to watch records, look at environments and play them. Needs the extra `ui`.

    guarding    who may ask: host, same origin; and what the browser may do
    pages       templates and errors
    app         all of them together; each page is a module with `ROUTES` (watch, compare, gallery, play)
    server      uvicorn on the loopback address

Nothing is loaded from elsewhere: styles, scripts and pictures come from this server alone.
"""
