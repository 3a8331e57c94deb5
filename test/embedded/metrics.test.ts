// Who may see which numbers of a node: how it is, anybody; how much is ordered, and in which shard,
// who may see the cluster; all of them who reaches the port that they have for themselves. Names
// follow Prometheus: counters end in _total, units are base units.
// Source: CONTRACT 0 "Operations".

import t from 'tap'
import type { Test } from 'tap'
import { PUBLIC_METRICS } from '../../node/health/public-metrics.ts'
import { NodeProcess } from '../harness/node-process.ts'
import { smallOrder } from '../harness/orders.ts'

t.setTimeout(120_000)

/** Of these a single process shows none. */
const OF_CLUSTERS = /^kontor_(cluster_|lease_|wire_|metrics_sources_failed)/

async function start(
  t: Pick<Test, 'teardown'>,
  env: Record<string, string> = {},
): Promise<NodeProcess> {
  const node = new NodeProcess(env)
  t.teardown(() => node.clear())
  return node.start()
}

function namesOf(text: string): Set<string> {
  return new Set(Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name!))
}

t.test('a stranger sees how the node is, and nothing of its business', async (t) => {
  const node = await start(t)
  await smallOrder(node)
  const { status, text } = await node.send('/metrics')
  t.equal(status, 200)
  t.notMatch(text, /shard=/)
  const expected = [...PUBLIC_METRICS].filter((name) => !OF_CLUSTERS.test(name))
  t.strictSame([...namesOf(text)].sort(), expected.sort())
  const all = await node.ask('/metrics')
  t.equal(all.status, 200)
  t.match(all.text, /^kontor_journal_head_offset\{shard="0"\} \d+$/m)
  for (const name of ['kontor_shard_head_offset', 'kontor_commit_entries_total', ...expected]) {
    t.ok(namesOf(all.text).has(name), name)
  }
  for (const [, name, kind] of all.text.matchAll(/^# TYPE (\S+) (\S+)/gm)) {
    t.equal(name!.endsWith('_total'), kind === 'counter', `${name} is a ${kind}`)
    t.notMatch(name, /_(ms|us|milliseconds|kib|mib)(_|$)/, `${name} has a base unit`)
  }
  const reader = await node.token('cluster:read')
  t.match((await node.ask('/metrics', { token: reader })).text, 'kontor_journal_head_offset')
  const other = await node.ask('/metrics', { token: await node.token('registry:read') })
  t.equal(other.status, 403)
  t.match(other.text, 'cluster:read')
  const none = await node.ask('/metrics', { token: 'x' })
  t.equal(none.status, 401)
  t.equal(none.headers['www-authenticate'], 'Bearer realm="kontor", error="invalid_token"')
})

t.test('on a port of their own they are for whoever reaches it, and nowhere else', async (t) => {
  const node = await start(t, { KONTOR_METRICS_PORT: '0' })
  t.equal((await node.send('/metrics')).status, 404)
  t.equal((await node.ask('/metrics')).status, 404)
  t.notMatch((await node.send('/openapi.json')).text, '"/metrics"')
  const [, at] = /(http:[^"\s]+)\/metrics/.exec(node.output)!
  t.notOk('metrics' in (await node.send('/')).json<{ links: object }>().links)
  const page = await fetch(`${at}/metrics`)
  t.equal(page.status, 200)
  t.match(await page.text(), 'kontor_journal_head_offset')
  for (const path of ['/health/live', '/resources/cluster', '/oauth/token', '/']) {
    t.equal((await fetch(at + path)).status, 404, path)
  }
  const second = new NodeProcess({ KONTOR_METRICS_PORT: new URL(at!).port })
  t.teardown(() => second.clear())
  await t.rejects(second.start())
  t.match(
    second.output,
    /can't listen on 127\.0\.0\.1:\d+.*\(KONTOR_METRICS_PORT, KONTOR_METRICS_HOST\)/,
  )
  t.equal(await node.stop(), 0)
})
