"""`vlgym ui`: one local web page to watch records, look at environments and play them. Needs the extra `ui`.

    settings    what the pages may show, and where they are served
    guarding    who may ask: token, host, same origin; and what the browser may do
    pages       templates and errors
    app         all of them together; each page is a module with `routes()` (watch, compare, gallery, play)
    server      uvicorn on an address of this machine

Nothing is loaded from elsewhere: styles, scripts and pictures come from this server alone.
"""
