// The one condition of a commit: what another process does between a look and a write.

import t, { type Test } from 'tap'
import { freshUuid, group } from '../conformance/journal-samples.ts'
import { openEnvironment, type JournalEnvironment } from './journal-environment.ts'
import { openEmbeddedJournal } from './journal.ts'
import { shardKey } from './journal-layout.ts'
import { CLAIMS_KEY, newToken, Places } from './journal-places.ts'
import { encodeNumber } from './journal-rows.ts'
import { journalOptions } from './testing/journal-options.ts'

async function open(t: Test) {
  const options = journalOptions(t)
  const journal = await openEmbeddedJournal({ ...options, shards: 4 })
  t.teardown(() => journal.close())
  const env = openEnvironment(options.dir, false)
  t.teardown(() => env.root.close())
  return { journal, env, random: options.random }
}

/** What another process's claim writes. */
async function claimElsewhere(
  env: JournalEnvironment,
  shard: number,
  epoch: number,
  token: number,
) {
  await env.root.batch(() => {
    void env.epochs.put(shardKey(shard), encodeNumber(shard, epoch).value, epoch)
    void env.epochs.put(CLAIMS_KEY, Buffer.alloc(1), token)
  })
}

t.test('a claim of another process fences its shard, and no other', async (t) => {
  const { journal, env, random } = await open(t)
  const { log } = journal
  const [one, two] = [await log.claim(1), await log.claim(2)]
  const first = [group({ shard: 1, epoch: one.epoch }), group({ shard: 2, epoch: two.epoch })]
  t.same(await log.append(first), ['committed', 'committed'])
  await claimElsewhere(env, 1, one.epoch + 1, newToken(random))
  const rows = [{ kind: 'consumer', consumer: 'flush', offset: 1 } as const]
  const written = journal.derived.write(1, one.epoch, rows)
  const next = [
    group({ shard: 1, epoch: one.epoch, head: 1 }),
    group({ shard: 2, epoch: two.epoch, head: 1 }),
  ]
  t.same(await log.append(next), ['fenced', 'committed'])
  t.equal(await written, 'fenced')
  t.equal((await log.status(1)).head, 1)
  t.equal((await log.read(1, 0, 1e6)).length, 1)
  t.same(await log.append([group({ shard: 2, epoch: two.epoch, head: 2 })]), ['committed'])
  t.same(await log.append([group({ shard: 1, epoch: one.epoch, head: 1 })]), ['fenced'])
})

t.test('groups of one shard follow each other within an append', async (t) => {
  const { journal } = await open(t)
  const { log } = journal
  const { epoch } = await log.claim(0)
  const groups = [group({ shard: 0, epoch, count: 2 }), group({ shard: 0, epoch, head: 2 })]
  t.same(await log.append(groups), ['committed', 'committed'])
  const torn = [group({ shard: 0, epoch, head: 3 }), group({ shard: 0, epoch, head: 5 })]
  t.same(await log.append(torn), ['committed', 'fenced'])
  t.equal((await log.status(0)).head, 4)
})

t.test('what does not fit leaves no trace', async (t) => {
  const { journal, env } = await open(t)
  const places = new Places(env)
  t.equal(places.tokenFor([], []), null, 'nobody has claimed yet')
  const { epoch } = await journal.log.claim(3)
  places.forget()
  const fits = group({ shard: 3, epoch, count: 2 })
  const gap = { ...fits, head: 5, commitId: freshUuid() }
  t.equal(places.tokenFor([fits, gap], []), null)
  t.type(places.tokenFor([fits], []), 'number', 'and the first fits still')
  places.committed([fits])
  t.equal(places.tokenFor([fits], []), null)
  t.type(places.tokenFor([{ ...fits, head: 2 }], [{ shard: 3, epoch }]), 'number')
  t.equal(places.tokenFor([], [{ shard: 3, epoch: epoch + 1 }]), null)
})
