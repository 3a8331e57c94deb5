# One node of Kontor: the program, its packages, Node 22. It runs as a user without rights and keeps
# what it writes in /data. Settings are its environment: docker run IMAGE --help lists them.

FROM node:22.23.3-bookworm-slim AS build
WORKDIR /kontor
COPY package.json package-lock.json .npmrc ./
# What is native comes as packages of this platform.
RUN npm ci --omit=dev --ignore-scripts --no-audit --no-fund
COPY LICENSE ./
COPY protocol protocol
COPY config config
COPY commerce commerce
COPY storage storage
COPY cluster cluster
COPY node node
COPY tools tools
COPY cli cli
# A start takes half as long when the program is packed; then what packed it can go.
RUN node tools/start/packed.mjs && node tools/set-up/lean.mjs

# Of the image of Node only node itself: npm, yarn and headers are as large as the program.
FROM debian:bookworm-slim
ENV NODE_ENV=production \
    KONTOR_HTTP_HOST=0.0.0.0 \
    KONTOR_METRICS_HOST=0.0.0.0 \
    KONTOR_DATA_DIR=/data
RUN groupadd --gid 1000 node && useradd --uid 1000 --gid node --create-home node \
  && mkdir /data && chown node:node /data
WORKDIR /kontor
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /kontor ./
USER node
VOLUME /data
EXPOSE 8080
# Alive, not ready: while an engine is away nothing is gained by a restart.
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s \
  CMD ["node", "cli/is-alive.mjs"]
# SIGTERM makes it drain and hand its shards over.
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "--disable-warning=ExperimentalWarning", "--use-largepages=silent", "cli/node.mjs"]
