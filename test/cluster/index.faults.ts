// Elasticsearch is killed under a member's graph index: what was committed meanwhile is there once
// it is back, in the same index. Source: PROTOCOL 3.13, 4.2 (F18).

import t from 'tap'
import type { Test } from 'tap'
import { A, B, C, opened } from '../../cluster/feed/testing/scene.ts'
import { RequestError } from '../../protocol/errors.ts'
import { IndexScene } from '../conformance/elastic/index-scene.ts'
import { faultEngine } from '../harness/engines.ts'
import { until } from '../harness/patience.ts'
import { aloneOnThisMachine } from './alone.ts'

t.setTimeout(30 * 60_000)

const codeOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    return String(await work)
  } catch (error) {
    return error instanceof RequestError ? error.errors[0]!.code : String(error)
  }
}

t.test('an engine that stops is waited out', { timeout: 25 * 60_000 }, (t) =>
  aloneOnThisMachine(() => waitedOut(t)),
)

async function waitedOut(t: Test): Promise<void> {
  const own = await faultEngine('elasticsearch')
  if ('skipped' in own) {
    t.pass(own.skipped, { skip: own.skipped })
    return
  }
  const s = new IndexScene(own, 'stopped')
  await s.start(t)
  t.equal(await s.reached(await s.commit([A, opened('one')])), true)
  await own.kill()
  for (let i = 0; i < 50; i++) await s.commit([A, opened(`${i}`)], [C, opened(`c${i}`)])
  const last = await s.commit([B, opened('two')])
  await s.store.flush()
  await until('it is noticed', () => s.warnings.length > 0)
  t.equal(await codeOf(s.titles()), 'UNAVAILABLE')
  t.equal(s.index.lag().entries, 101)
  await own.start()
  await s.ready()
  await until('it has caught up', () => s.index.lag().entries === 0, 60_000)
  t.equal(await s.reached(last), true)
  t.equal(await s.titles(), '49 c49 two')
  t.equal(s.index.watch.generation, 1, 'the same index goes on')
}
