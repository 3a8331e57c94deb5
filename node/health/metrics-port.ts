// The port of the metrics alone, for who keeps it where no caller comes. Source: CONTRACT 0
// "Operations".

import { LIMITS } from '../../config/limits.ts'
import type { Settings } from '../../config/settings.ts'
import { RequestError } from '../../protocol/errors.ts'
import type { Clock, Log } from '../http/core.ts'
import { createHttpServer } from '../http/server.ts'
import type { HttpServer } from '../http/server.ts'
import { Metrics } from '../metrics.ts'
import { allMetricsOperation } from './routes.ts'

export interface MetricsPortOptions {
  readonly settings: Pick<Settings, 'http' | 'metrics'>
  readonly log: Log
  /** What is shown; of its own requests this port counts nothing. */
  readonly metrics: Metrics
  readonly clock: Clock
}

/**
 * Listens, with HTTPS where the node speaks it; null where no port is set. Throws an Error that
 * names the settings when the address can't be had.
 */
export async function listenForMetrics(options: MetricsPortOptions): Promise<HttpServer | null> {
  const { http, metrics: at } = options.settings
  if (at.port === null) return null
  const server = createHttpServer({
    settings: {
      ...http,
      host: at.host,
      port: at.port,
      connectionsMax: Math.min(http.connectionsMax, LIMITS.health.metricsConnectionsMax),
    },
    operations: [allMetricsOperation(options.metrics)],
    // Nothing here asks for a token.
    authenticate: () => new RequestError('UNAUTHENTICATED', 'no token is known here'),
    log: options.log,
    metrics: new Metrics(),
    clock: options.clock,
  })
  try {
    await server.listen()
  } catch (error) {
    const { message } = error as Error
    throw new Error(`${message} (KONTOR_METRICS_PORT, KONTOR_METRICS_HOST)`, { cause: error })
  }
  return server
}
