// `npm run move`: copies the embedded store of a stopped node into the keyspace of a cluster, under
// a new generation, and looks through what it has written. The embedded store is only read; members
// are started afterwards. Source: PROTOCOL 3.12.

import { existsSync, readFileSync } from 'node:fs'
import { EXIT_CONFIG } from '../config/load.ts'
import { fillCassandra } from '../storage/cassandra/fill/fill.ts'
import { verifyCassandra } from '../storage/cassandra/verify/log.ts'
import type { CassandraOptions } from '../storage/cassandra/store.ts'
import { lockDirectory } from '../storage/embedded/directory-lock.ts'
import { openForCopy } from '../storage/embedded/journal/row-copy.ts'
import { writeMoved } from '../storage/embedded/moved-store.ts'
import { cassandraOptions } from './cassandra-options.ts'
import { storeArguments } from './store-arguments.ts'

const USAGE = `Usage: npm run move -- [--data DIR] [--config FILE]
  --data DIR     the data directory of the stopped node, ./data unless set
  --config FILE  settings file of the cluster, beside the environment
Where to: KONTOR_CASSANDRA_CONTACT_POINTS, _DATACENTER, _KEYSPACE, _REPLICATION.`

/** Exit codes: it is moved, it is not. */
const EXIT = { moved: 0, failed: 1 } as const

/** Between two lines that say how far it has come. */
const TELL_MS = 5_000

async function main(): Promise<number> {
  const given = storeArguments(USAGE)
  if (typeof given === 'number') return given
  const dir = given.data ?? (process.env['KONTOR_DATA_DIR'] || './data')
  const loaded = cassandraOptions(process.env, given.config, (path) => readFileSync(path, 'utf8'))
  if ('problems' in loaded) {
    for (const problem of loaded.problems) console.error(problem)
    return EXIT_CONFIG
  }
  try {
    if (!existsSync(dir)) throw new Error('there is no such directory')
    const lock = await lockDirectory(dir, { what: 'npm run move' })
    try {
      return await move(dir, loaded.options)
    } finally {
      lock.release()
    }
  } catch (error) {
    console.error(`${dir} is not moved: ${(error as Error).message}`)
    return EXIT.failed
  }
}

async function move(dir: string, options: CassandraOptions): Promise<number> {
  const { random, clock, now, log, keyspace } = options
  const source = await openForCopy({ dir, log, random, clock })
  let toldAtMs = now()
  try {
    const done = await fillCassandra(options, source, ({ derivedRows, groups, entries }) => {
      if (now() - toldAtMs < TELL_MS) return
      toldAtMs = now()
      console.log(`${derivedRows} derived rows, ${groups} groups with ${entries} entries so far`)
    })
    console.log(
      `${dir}: ${done.derivedRows} derived rows and ${done.groups} groups with ${done.entries} ` +
        `entries are in the keyspace ${keyspace}, generation ${done.generation}`,
    )
  } finally {
    await source.close()
  }
  const { findings } = await verifyCassandra(options, (line) => console.log(line))
  if (findings > 0) {
    console.error(`findings: ${findings}: drop the keyspace ${keyspace} and move again`)
    return EXIT.failed
  }
  const [at, places] = [new Date(clock()).toISOString(), options.contactPoints.join(', ')]
  writeMoved(dir, { to: `the keyspace ${keyspace} at ${places}`, at })
  console.log(
    'Nothing is wrong with it. Start members with KONTOR_STORAGE_DRIVER=cluster; from now on ' +
      `${dir} is a backup: no node starts on it any more.`,
  )
  return EXIT.moved
}

// What it writes is for its user alone.
process.umask(0o077)
process.exitCode = await main()
