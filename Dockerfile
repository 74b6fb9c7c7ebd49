# The command line beside servers: `doctor`, `copy`, `export`, `import`, `reindex`, `retry` as jobs of
# a cluster or of compose.yaml, and the pages of `commonplace serve` (docs/how-to/deploy.md). The library itself
# runs inside your application.
#
#   docker build --tag commonplace .
#   docker run --rm -v "$PWD/memory:/memory" commonplace doctor /memory
#   docker compose run --rm jobs doctor \
#     "graph=neo4j://neo4j:commonplace@neo4j:7687,vectors=qdrant://qdrant:6333,journal=/memory"
#
# A folder that is mounted must belong to user 1000, or give `--user`. A journal belongs to one host.
FROM python:3.13-slim

COPY pyproject.toml constraints.txt README.md LICENSE /source/
COPY core /source/core
COPY adapters /source/adapters
RUN pip install --no-cache-dir --constraint /source/constraints.txt "/source[cli,mem0,neo4j,openai,qdrant,serve]" \
    && rm -r /source \
    && useradd --uid 1000 commonplace \
    && install --directory --owner 1000 /memory

USER 1000
WORKDIR /memory
VOLUME /memory
ENTRYPOINT ["commonplace"]
CMD ["--help"]
