// What Cassandra must be like, and what an operator is told when it isn't.

import t from 'tap'
import { bytesOf, checkEngine, EngineUnfit, msOf } from './engine.ts'
import type { Host, Row } from './session.ts'
import { recorder } from '../testing/recorder.ts'

const SAFE = {
  max_mutation_size: '16MiB',
  commitlog_segment_size: '32MiB',
  commitlog_sync: 'group',
  paxos_variant: 'v2',
  cas_contention_timeout: '1800ms',
  write_request_timeout: '2s',
  read_request_timeout: '5s',
  range_request_timeout: '3s',
  batch_size_warn_threshold: '5KiB',
  unlogged_batch_across_partitions_warn_threshold: '10',
}

/** Nodes that answer with these settings. */
function nodes(...all: { version?: string; settings?: Record<string, string | null> }[]) {
  const hosts = all.map(({ version }, i) => {
    return { address: `10.0.0.${i}:9042`, cassandraVersion: version ?? '5.0.9' } as Host
  })
  return {
    hosts: () => hosts,
    askHost(host: Host) {
      const settings = { ...SAFE, ...all[hosts.indexOf(host)]!.settings }
      const rows = Object.entries(settings).map(([name, value]) => ({ name, value }))
      return Promise.resolve(rows as unknown as readonly Row[])
    },
  }
}

void t.test(
  'a safe engine: nothing is said, and the client waits longer than the server',
  async (t) => {
    const log = recorder()
    const fit = await checkEngine(nodes({}, {}, {}), log)
    t.same(log.told, [])
    t.equal(fit.timeoutMs, 5_500)
    t.same(fit.bounds, { bytes: 3_840, partitions: 10 })
  },
)

void t.test('bounds are those of the most cautious node, and have an end', async (t) => {
  const wide = {
    batch_size_warn_threshold: '1MiB',
    unlogged_batch_across_partitions_warn_threshold: '500',
  }
  const { bounds } = await checkEngine(nodes({ settings: wide }), recorder())
  t.same(bounds, { bytes: 65_536, partitions: 50 })
  const mixed = await checkEngine(nodes({ settings: wide }, {}), recorder())
  t.same(mixed.bounds, { bytes: 3_840, partitions: 10 })
  const slow = { read_request_timeout: '60s' }
  t.equal((await checkEngine(nodes({ settings: slow }), recorder())).timeoutMs, 12_000)
})

void t.test('a small mutation limit is refused with the names of the settings', async (t) => {
  for (const settings of [
    { max_mutation_size: '2048KiB' },
    { max_mutation_size: null, commitlog_segment_size: '4MiB' },
  ]) {
    const error = await checkEngine(nodes({}, { settings }), recorder()).catch((e: unknown) => e)
    t.ok(error instanceof EngineUnfit)
    t.match((error as Error).message, /10\.0\.0\.1:9042: max_mutation_size is 2048 KiB/)
    t.match((error as Error).message, /commitlog_segment_size/)
  }
  const just = { max_mutation_size: '4096KiB' }
  await t.resolves(checkEngine(nodes({ settings: just }), recorder()))
})

void t.test('old versions are refused', async (t) => {
  for (const version of ['3.11.19', '4.0.20', '4.1.5', '4.1.5-SNAPSHOT']) {
    await t.rejects(checkEngine(nodes({ version }), recorder()), { message: /needs 4\.1\.6/ })
  }
  for (const version of ['4.1.6', '4.1.10', '4.2', '5.0-beta1', '5.0.9', '6.0-alpha2']) {
    await t.resolves(checkEngine(nodes({ version }), recorder()), version)
  }
})

void t.test('settings that lose what was acknowledged are warned about', async (t) => {
  const log = recorder()
  const unsafe = { commitlog_sync: 'periodic', paxos_variant: 'v1' }
  await checkEngine(nodes({ settings: unsafe }), log)
  t.same(
    log.told.map(({ level, fields }) => [level, (fields as { setting: string }).setting]),
    [
      ['warn', 'commitlog_sync'],
      ['warn', 'paxos_variant'],
    ],
  )
})

void t.test('units', async (t) => {
  t.same(['5B', '4096KiB', '4 MiB', '1GiB'].map(bytesOf), [5, 4_194_304, 4_194_304, 1_073_741_824])
  t.same(['', null, undefined, '4MB', 'null'].map(bytesOf), Array(5).fill(null))
  t.same(['10ms', '2s', '3m', '1h'].map(msOf), [10, 2_000, 180_000, 3_600_000])
  t.equal(msOf('10'), null)
})
