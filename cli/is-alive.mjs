// The health check of the image: ends with 0 when the node of this container is alive. Not when it
// is ready: an engine that is away makes every member unready, and to start them all again would
// mend nothing. It asks GET /health/live, for whoever runs containers.

import { get as plain } from 'node:http'
import { get as secure } from 'node:https'

const PATIENCE_MS = 2_500

const {
  KONTOR_HTTP_HOST: host,
  KONTOR_HTTP_PORT: port,
  KONTOR_HTTP_TLS_KEY_FILE: key,
} = process.env
const everywhere = !host || host === '0.0.0.0' || host === '::'
const to = {
  host: everywhere ? '127.0.0.1' : host,
  port: port || 8080,
  path: '/health/live',
  // It is this very process's neighbour that is asked; its certificate is for another name.
  rejectUnauthorized: false,
  timeout: PATIENCE_MS,
}
const end = (/** @type {boolean} */ isAlive) => process.exit(isAlive ? 0 : 1)
const asked = (key ? secure : plain)(to, ({ statusCode }) => end(statusCode === 200))
asked.on('timeout', () => end(false))
asked.on('error', () => end(false))
