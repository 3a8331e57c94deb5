// `npm run verify-log`: reads everything that a store holds and says what is wrong. It reads the
// data directory of a stopped node, or with KONTOR_STORAGE_DRIVER=cluster the keyspace of members
// that may go on.

import { existsSync, readFileSync } from 'node:fs'
import { orderBehaviour } from '../commerce/order/order.ts'
import { EXIT_CONFIG } from '../config/load.ts'
import type { Behaviour } from '../protocol/behaviour.ts'
import { verifyCassandra } from '../storage/cassandra/verify/log.ts'
import { lockDirectory } from '../storage/embedded/directory-lock.ts'
import { verifyLog } from '../storage/embedded/verify/store.ts'
import { cassandraOptions, storeOf } from './cassandra-options.ts'
import { EXIT_USAGE, storeArguments, type StoreArguments } from './store-arguments.ts'

const USAGE = `Usage: npm run verify-log -- [--data DIR] [--config FILE] [--repair]
  --data DIR     an embedded store: the directory of KONTOR_DATA_DIR, ./data unless set
  --config FILE  the settings file of a node, beside the environment: its store is read, which is a
                 cluster's keyspace where the file or the environment says so or names Cassandra
  --repair       puts back what is missing of actors where the log still has it, keeps what is
                 needed of them and would go, and gives back natural keys that lead to an actor
                 which doesn't have them; of two histories of one actor both are shown, and
                 nothing is changed. An embedded store's node must be stopped
Without --data, KONTOR_STORAGE_DRIVER=cluster means the keyspace KONTOR_CASSANDRA_KEYSPACE.`

/** Actors with natural keys. */
const behaviours = new Map([['order', orderBehaviour() as Behaviour]])

/** Exit codes: all is well, something is wrong. */
const EXIT = { well: 0, damaged: 1 } as const

async function main(): Promise<number> {
  const given = storeArguments(USAGE, { mayRepair: true })
  if (typeof given === 'number') return given
  const { data, config } = given
  if (data !== undefined && config !== undefined) {
    console.error('--data names one store, --config another: give one of them')
    return EXIT_USAGE
  }
  if (data !== undefined) return verifyDirectory(data, given)
  const store = storeOf(process.env, config, (path) => readFileSync(path, 'utf8'))
  if ('problems' in store) return refuse(store)
  return store.isCluster ? verifyKeyspace(given) : verifyDirectory(store.dataDir, given)
}

function refuse({ problems }: { readonly problems: readonly string[] }): number {
  for (const problem of problems) console.error(problem)
  return EXIT_CONFIG
}

async function verifyDirectory(dir: string, { repair }: StoreArguments): Promise<number> {
  const print = (line: string): void => console.log(line)
  if (!repair || !existsSync(dir)) return outcome(dir, await verifyLog(dir, print, { behaviours }))
  try {
    const lock = await lockDirectory(dir, { what: 'npm run verify-log -- --repair' })
    const counts = await verifyLog(dir, print, { repair, behaviours })
    lock.release()
    return outcome(dir, counts)
  } catch (error) {
    console.error((error as Error).message)
    return EXIT.damaged
  }
}

async function verifyKeyspace({ config, repair }: StoreArguments): Promise<number> {
  const loaded = cassandraOptions(process.env, config, (path) => readFileSync(path, 'utf8'))
  if ('problems' in loaded) return refuse(loaded)
  const { options } = loaded
  try {
    const print = (line: string): void => console.log(line)
    return outcome(options.keyspace, await verifyCassandra(options, print, { repair, behaviours }))
  } catch (error) {
    console.error((error as Error).message)
    return EXIT.damaged
  }
}

interface Counts {
  readonly findings: number
  readonly groups: number
  readonly entries: number
  readonly derivedRows: number
}

function outcome(what: string, { findings, groups, entries, derivedRows }: Counts): number {
  console.log(
    `${what}: ${groups} groups, ${entries} entries and ${derivedRows} derived rows read, ` +
      (findings === 0 ? 'nothing is wrong' : `findings: ${findings}`),
  )
  return findings === 0 ? EXIT.well : EXIT.damaged
}

// What it writes is for its user alone.
process.umask(0o077)
process.exitCode = await main()
