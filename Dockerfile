# docker build --target light -t vlgym .        families without Debian packages
# docker build --target all -t vlgym:all .      all families, evaluation and the page
FROM python:3.11-slim-bookworm AS wheels
WORKDIR /source
COPY . .
RUN python -m pip install --no-cache-dir build==1.3.0 \
    && for folder in . plugins/*/; do python -m build --wheel --outdir /wheels "$folder" || exit 1; done

FROM python:3.11-slim-bookworm AS light
COPY --from=wheels /wheels /wheels
# hadolint ignore=DL3013
RUN python -m pip install --no-cache-dir --find-links /wheels 'vlgym[light]' \
    && useradd --create-home --uid 1000 player
USER 1000
WORKDIR /home/player
ENTRYPOINT ["vlgym"]
CMD ["list"]

FROM light AS all
USER root
# hadolint ignore=DL3008,DL3013,SC2046
RUN apt-get update \
    && apt-get install -y --no-install-recommends build-essential cmake \
    && python -m pip install --no-cache-dir --find-links /wheels 'vlgym[all,eval,ui]' \
    && apt-get install -y --no-install-recommends $(vlgym doctor --apt) \
    && rm -rf /var/lib/apt/lists/*
USER 1000
# The engine of football is compiled for this user: about 8 minutes of one processor.
RUN python -m vlgym_football.build
