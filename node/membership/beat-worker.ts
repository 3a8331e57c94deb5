// The thread of the beat: a connection to Cassandra of its own, so that neither a busy main loop
// nor its many statements delay the one that keeps a member alive. Source: PROTOCOL 3.3.2.

import { parentPort, workerData } from 'node:worker_threads'
import type { Log } from '../../protocol/log.ts'
import { assert } from '../../protocol/errors.ts'
import { CassandraControl } from '../../storage/cassandra/control.ts'
import { Session } from '../../storage/cassandra/session/session.ts'
import { BeatService, threadClock } from './beat-service.ts'
import type { BeatControl } from './beat-service.ts'
import type { BeatWorkerData } from './beat-messages.ts'

assert(parentPort !== null, 'this file runs as a worker thread')
const { control: at, ticks } = workerData as BeatWorkerData

async function connect(log: Log): Promise<BeatControl> {
  const { contactPoints, datacenter, keyspace, serial, credentials, tls = null } = at
  const session = await Session.connect({
    contactPoints,
    datacenter,
    credentials,
    tls,
    log,
    now: () => performance.now(),
  })
  session.use(serial)
  return { control: new CassandraControl(session, keyspace), close: () => session.close() }
}

new BeatService({ port: parentPort, ticks, connect, clock: threadClock() }).serve()
