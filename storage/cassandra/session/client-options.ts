// How the driver connects to Cassandra: addresses, certificates, the clocks and waits that it has.

import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import { auth, policies } from 'cassandra-driver'
import { LIMITS } from '../../../config/limits.ts'
import type { EngineTls } from '../../../config/settings.ts'
import type { Log } from '../../../protocol/log.ts'

export interface Credentials {
  readonly username: string
  readonly password: string
}

export interface SessionOptions {
  /** `host:port`. */
  readonly contactPoints: readonly string[]
  /** The driver talks to nodes of this data centre alone. */
  readonly datacenter: string
  /** null: Cassandra asks for none. */
  readonly credentials?: Credentials | null | undefined
  /** null: it is spoken to in the clear. */
  readonly tls?: EngineTls | null | undefined
  readonly log: Log
  /** Monotonic milliseconds. */
  readonly now: () => number
}

const CQL_PORT = 9_042

export function clientOptions(options: SessionOptions) {
  const { contactPoints, datacenter, credentials, tls } = options
  const { username, password } = credentials ?? {}
  return {
    contactPoints: [...contactPoints],
    localDataCenter: datacenter,
    // Nodes that are found through the contact points: Cassandra doesn't tell their ports.
    protocolOptions: { port: Number(/:(\d+)$/.exec(contactPoints[0] ?? '')?.[1] ?? CQL_PORT) },
    ...(username !== undefined && password !== undefined
      ? { authProvider: new auth.PlainTextAuthProvider(username, password) }
      : {}),
    ...(tls ? { sslOptions: sslOptions(tls, contactPoints) } : {}),
    policies: {
      // Token-aware, this data centre only.
      loadBalancing: new policies.loadBalancing.DefaultLoadBalancingPolicy({ localDc: datacenter }),
      speculativeExecution: new policies.speculativeExecution.NoSpeculativeExecutionPolicy(),
      // An engine that comes back is used again within a second; the default waits ten minutes.
      reconnection: new policies.reconnection.ExponentialReconnectionPolicy(
        100,
        LIMITS.cassandra.reconnectMs,
        false,
      ),
      // Registers carry their offsets, conditional statements their ballots, deletes the
      // coordinator's clock: this machine's clock decides nothing.
      timestampGeneration: null as never,
    },
    socketOptions: {
      connectTimeout: LIMITS.cassandra.connectMs,
      // A connection on which so many statements got no answer is given up.
      defunctReadTimeoutThreshold: LIMITS.cassandra.silentMax,
    },
    pooling: { heartBeatInterval: LIMITS.cassandra.heartBeatMs },
    monitorReporting: { enabled: false },
  }
}

/**
 * The driver's own default is to trust every certificate. It connects to addresses, which it has
 * resolved or been told of by the nodes; certificates may be for the names of contact points.
 */
function sslOptions({ ca, cert, key }: EngineTls, contactPoints: readonly string[]) {
  const names = contactPoints.map((point) => point.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'))
  return {
    rejectUnauthorized: true,
    ...(ca !== null && { ca }),
    ...(cert !== null && { cert }),
    ...(key !== null && { key }),
    checkServerIdentity(address: string, shown: PeerCertificate): Error | undefined {
      const faults = [address, ...names].map((name) => checkServerIdentity(name, shown))
      return faults.includes(undefined) ? undefined : faults[0]
    },
  }
}
