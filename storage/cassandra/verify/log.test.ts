// The audit of a store in Cassandra finds what is wrong, by its place, and nothing in a sound one.

import t from 'tap'
import { encodeEntry, joinEntries } from '../../../protocol/entry/entry.ts'
import { ledger } from '../../../cluster/testing/ledger.ts'
import type { Behaviour } from '../../../protocol/behaviour.ts'
import { placeOfKey, shardOf } from '../../../protocol/ids.ts'
import { freshUuid, group } from '../../conformance/journal-samples.ts'
import { encodeBlob } from '../derived/rows.ts'
import type { Session, Statement } from '../session/session.ts'
import type { CassandraStore } from '../store.ts'
import { onBoth } from '../testing/both.ts'
import { expireRows } from '../testing/expired-rows.ts'
import { StoreMaker } from '../testing/test-store.ts'
import { verifyCassandra } from './log.ts'
import { ACTOR, OTHER, SHARD, entryOf, write } from '../testing/written-log.ts'

await onBoth(t, 'the audit', async (t, cassandra) => {
  const options = cassandra.options(t)
  const { keyspace } = options
  const stores = new StoreMaker(options)
  const verify = async (how = {}) => {
    const lines: string[] = []
    const report = await verifyCassandra(options, (line) => lines.push(line), how)
    return { ...report, lines: lines.map((line) => line.slice(keyspace.length + 2)) }
  }
  const put = (session: Session, table: string, set: Statement) =>
    session.put([{ query: `UPDATE ${keyspace}.${table} ${set.query}`, params: set.params }])

  t.test('a sound store, over two segments, trimmed, with rejections and keys', async (t) => {
    const store = await stores.make(t)
    const { segments, derived } = store
    const head = await write(store, [
      [entryOf(ACTOR, 1), entryOf(ACTOR, 2)],
      [entryOf(OTHER, 1), entryOf(ACTOR, 3, { records: 0, v: 2 })],
    ])
    const of = { shard: SHARD, segment: 1 }
    t.equal(await segments.seal(of, { epoch: 0, head }), 'applied')
    t.equal(await segments.open({ ...of, segment: 2 }, { epoch: 0, head }), 'applied')
    const key = { keyType: 'order', key: '7', change: 'take', actorId: OTHER } as const
    const claim = { actorId: OTHER, messageId: 'm', confirmed: true, clock: 0 }
    await derived.write(SHARD, 0, [
      { kind: 'alias', offset: 5, row: { keyType: 'order', key: '7', claims: [claim] } },
    ])
    const last = [entryOf(OTHER, 2, { k: [key] }), entryOf(ACTOR, 4, { v: 2 })]
    await write(store, [last], { segment: 2, head })
    const snapshot = Buffer.from(JSON.stringify({ n: 4, version: 3, state: {} }))
    await derived.write(SHARD, 0, [
      { kind: 'snapshot', actorId: ACTOR, offset: 6, body: snapshot },
      { kind: 'shard', offset: 6, body: Buffer.from('{}') },
      {
        kind: 'mark',
        actorId: ACTOR,
        day: 1,
        messageId: 'm',
        offset: 6,
        body: Buffer.from('{"messageId":"m"}'),
      },
      { kind: 'parked', consumer: 'index', actorId: ACTOR, offset: 6, body: Buffer.of(1) },
    ])
    t.same(await verify(), { findings: 0, groups: 3, entries: 6, derivedRows: 12, lines: [] })
    await segments.dropRows(of, 2)
    t.match(await verify(), { findings: 0, groups: 2, entries: 4 })
    await segments.dropRows(of, 4)
    t.match(await verify(), { findings: 0, groups: 1, entries: 2 })
  })

  t.test(
    'keys whose actor has them no more are given back, once their shard went on',
    async (t) => {
      const store = await stores.make(t)
      const behaviours = new Map([['ledger', ledger as Behaviour]])
      const verifyKeys = async (repair: boolean) => {
        const lines: string[] = []
        await verifyCassandra(options, (line) => lines.push(line), { repair, behaviours })
        return lines.filter((line) => line.includes('leads to'))
      }
      const opened = (actorId: string, number: string) => {
        return entryOf(actorId, 1, { y: 'ledger', r: [{ t: 'opened', number }] })
      }
      // A number whose shard is the first.
      const key = Array.from({ length: 999 }, (_, i) => `L${i}`).find((text) => {
        return shardOf(placeOfKey('ledger', text), 2) === SHARD
      })!
      const head = await write(store, [[opened(ACTOR, 'own')]])
      const claim = { actorId: ACTOR, messageId: 'm', confirmed: true, clock: 0 }
      const row = { keyType: 'ledger', key, claims: [claim] }
      await store.derived.write(SHARD, 0, [{ kind: 'alias', offset: head, row }])
      t.match(await verifyKeys(false), [/--repair gives it back/])
      t.match(await verifyKeys(true), [/once its shard goes on/])
      await write(store, [[opened(OTHER, 'else')]], { head })
      t.match(await verifyKeys(true), [/it was given back/])
      t.same(await verifyKeys(false), [])
      t.same((await store.derived.alias('ledger', key))?.claims, [])
    },
  )

  t.test('what a log may not hold', async (t) => {
    const store = await stores.make(t)
    const { segments } = store
    const twice = entryOf(ACTOR, 3, { m: 'the same' })
    const groups = [
      [entryOf(ACTOR, 1), entryOf(ACTOR, 2, { m: 'the same' })],
      [twice],
      [entryOf(ACTOR, 5, { v: 3 })],
      [entryOf(ACTOR, 6, { v: 3 })],
      [entryOf(OTHER, 1, { s: [1, 5, 0] }), entryOf(OTHER, 2, { s: [1, 5, 0] })],
    ]
    await write(store, groups)
    const { lines } = await verify()
    for (const wanted of [
      `shard 0: offset 3: actor ${ACTOR}: message the same was taken at 2 already`,
      `shard 0: offset 4: actor ${ACTOR}: entry 5 behind 3`,
      `shard 0: offset 5: actor ${ACTOR}: goes on from version 3, it was at 4 at offset 4: ` +
        'acknowledged changes have been left out',
      `shard 0: offset 7: actor ${OTHER}: what shard 1 relayed from offset 5 came twice`,
    ]) {
      t.ok(lines.includes(wanted), wanted)
    }
    await segments.append(1, group({ shard: SHARD, epoch: 0, head: 7, body: Buffer.of(9) }))
    const body = joinEntries([encodeEntry(entryOf(OTHER, 3))])
    const lying = group({ shard: SHARD, epoch: 0, head: 8, count: 2, body })
    t.equal(await segments.append(1, lying), 'applied')
    const again = await verify()
    t.match(
      again.lines.find((line) => line.includes('offset 8')),
      /entry format 9 is not readable/,
    )
    t.ok(again.lines.includes('shard 0: offset 9: holds 1 entries and says 2'))
  })

  t.test('damage', async (t) => {
    const session = await cassandra.session(t)
    const cases: [string, (store: CassandraStore) => Promise<unknown>, RegExp][] = [
      [
        'a row in the middle is gone',
        () =>
          session.put([
            {
              query: `DELETE FROM ${keyspace}.log WHERE shard = 0 AND segment = 1 AND off = ?`,
              params: [4],
            },
          ]),
        /^shard 0: offset 3: the entries up to 4 are missing$/,
      ],
      [
        'rows behind flush are gone',
        async ({ segments, derived }) => {
          const body = joinEntries([encodeEntry(entryOf(ACTOR, 5))])
          await segments.append(1, group({ shard: SHARD, epoch: 0, head: 6, body }))
          await segments.dropRows({ shard: SHARD, segment: 1 }, 7)
          await derived.trimImages()
        },
        /^shard 0: offset 1: the entries up to 7 are missing$/,
      ],
      [
        'a head that has no group',
        () =>
          session.conditional(
            `UPDATE ${keyspace}.log SET head = 9 WHERE shard = 0 AND segment = 1 IF head = 6`,
            [],
          ),
        /^shard 0: offset 7: the entries up to 9 are missing$/,
      ],
      [
        'another last commit',
        () =>
          session.conditional(
            `UPDATE ${keyspace}.log SET last_commit = ? WHERE shard = 0 AND segment = 1 IF head = 6`,
            [freshUuid()],
          ),
        /^shard 0: segment 1: its last group is another one than its statics say$/,
      ],
      [
        'a segment that begins elsewhere',
        async ({ segments }) => {
          const of = { shard: SHARD, segment: 1 }
          await segments.seal(of, { epoch: 0, head: 6 })
          await segments.open({ ...of, segment: 2 }, { epoch: 0, head: 8 })
        },
        /^shard 0: segment 2 begins at 8, the one before it ends at 6$/,
      ],
      [
        'an epoch above that of the control row',
        ({ segments }) => segments.fence({ shard: SHARD, segment: 1 }, 3),
        /^shard 0: its epoch is 0, its log has 3$/,
      ],
      [
        'an actor misses an entry',
        ({ derived }) =>
          derived.write(SHARD, 0, []).then(() =>
            session.put([
              {
                query: `DELETE FROM ${keyspace}.actor_entry WHERE pid = ? AND bucket = 0 AND n = 2`,
                params: [ACTOR],
              },
            ]),
          ),
        /^shard 0: offset 2: actor \S+a: entry 2 is flushed and has no row$/,
      ],
      [
        'an entry is another one',
        () =>
          put(session, 'actor_entry', {
            query: 'SET body = ? WHERE pid = ? AND bucket = 0 AND n = 2',
            params: [encodeBlob(2, encodeEntry(entryOf(ACTOR, 2, { b: 'you' }))), ACTOR],
          }),
        /^shard 0: offset 2: actor \S+a: entry 2 has a row with another content$/,
      ],
      [
        'flush above the head',
        ({ derived }) =>
          derived.write(SHARD, 0, [{ kind: 'consumer', consumer: 'flush', offset: 99 }]),
        /^shard 0: its flush offset 99 is above its head 6$/,
      ],
      [
        'a consumer above the head',
        ({ derived }) =>
          derived.write(SHARD, 0, [{ kind: 'consumer', consumer: 'index', offset: 99 }]),
        /^consumer_offset 0 index 99: is above the head of its log$/,
      ],
      [
        'a snapshot at another version',
        ({ derived }) => {
          const body = Buffer.from('{"n":2,"version":7}')
          return derived.write(SHARD, 0, [{ kind: 'snapshot', actorId: ACTOR, offset: 3, body }])
        },
        /^actor_snap \S+a: is at version 7, entry 2 ends at 2$/,
      ],
      [
        'a blob of a newer version',
        () =>
          put(session, 'alias', {
            query: "SET body = ? WHERE type = 'order' AND key = '1'",
            params: [Buffer.of(2, 0, 0, 0, 0, 0, 1)],
          }),
        /^alias order 1: can't be read: .*newer Kontor/,
      ],
      [
        'a key that was taken and has no row',
        (store) => {
          const k = [{ keyType: 'order', key: '8', change: 'take', actorId: ACTOR }] as const
          return write(store, [[entryOf(ACTOR, 5, { k })]], { head: 6 })
        },
        /^shard 0: offset 7: key '8' of order has no row$/,
      ],
    ]
    for (const [name, damage, wanted] of cases) {
      await t.test(name, async (t) => {
        const store = await stores.make(t)
        await write(store, [
          [entryOf(ACTOR, 1), entryOf(ACTOR, 2)],
          [entryOf(ACTOR, 3), entryOf(ACTOR, 4)],
          [entryOf(OTHER, 1), entryOf(OTHER, 2)],
        ])
        t.equal((await verify()).findings, 0)
        await damage(store)
        const { lines } = await verify()
        t.ok(
          lines.some((line) => wanted.test(line)),
          lines.join('\n'),
        )
      })
    }
  })

  // An earlier version read an actor only up to a refusal that had expired, and went on from there.
  t.test('two histories of one actor: both are shown, nothing is changed', async (t) => {
    const store = await stores.make(t)
    const refusal = entryOf(ACTOR, 3, { records: 0, v: 2 })
    await write(store, [
      [entryOf(ACTOR, 1), entryOf(ACTOR, 2), refusal],
      [entryOf(ACTOR, 4, { v: 2 }), entryOf(ACTOR, 5, { v: 3 })],
      [entryOf(ACTOR, 3, { v: 2, m: 'a' }), entryOf(ACTOR, 4, { v: 3, m: 'b' })],
    ])
    for (const how of [{}, { repair: true }, {}]) {
      const { lines } = await verify(how)
      const wanted = [
        /^shard 0: offset 6: actor \S+a: entry 3 behind 5$/,
        /: goes on from version 2, it was at 4 at offset 5: acknowledged changes have been left out$/,
        /^shard 0: offset 4: actor \S+a: entry 4 \(.*version 2 to 3.*\) has a row of offset 7$/,
        /^actor_entry \S+a 0: entry 5 \(offset 5, version 3 to 4, .*\) was acknowledged and is left/,
      ]
      t.equal(lines.length, wanted.length, lines.join('; '))
      for (const [i, pattern] of wanted.entries()) t.match(lines[i], pattern)
    }
  })

  t.test('refusals may be missing; what else is missing is put back when asked', async (t) => {
    const store = await stores.make(t)
    const session = await cassandra.session(t)
    const refusal = entryOf(ACTOR, 2, { records: 0, v: 1 })
    const relayed = entryOf(ACTOR, 3, { records: 0, v: 1, s: [1, 7, 0] })
    await write(store, [
      [entryOf(ACTOR, 1), refusal, relayed],
      [entryOf(ACTOR, 4, { v: 1 }), entryOf(ACTOR, 5, { v: 2 })],
    ])
    t.equal(await expireRows(session, keyspace), 1)
    t.same((await verify()).lines, [])
    // As it is once a row with a TTL has expired: with a tombstone of its own timestamp.
    const query = `DELETE FROM ${keyspace}.actor_entry USING TIMESTAMP ?
                   WHERE pid = ? AND bucket = 0 AND n = ?`
    for (const n of [3, 4, 5]) await session.put([{ query, params: [n, ACTOR, n] }])
    const lost = [3, 4, 5].map((n) => {
      return `shard 0: offset ${n}: actor ${ACTOR}: entry ${n} is flushed and has no row`
    })
    t.same((await verify()).lines, lost)
    const mended = await verify({ repair: true })
    t.same(
      mended.lines,
      lost.map((line) => `${line}; it was put back`),
    )
    t.same((await verify()).lines, [])
    const range = { order: 'ascending', after: 0, bytesMax: 1e6 } as const
    const rows = await store.derived.entries(ACTOR, range)
    t.same(
      rows.map(({ n, offset }) => [n, offset]),
      [1, 3, 4, 5].map((n) => [n, n]),
    )
  })

  // An earlier version gave all refusals a time to live, and a move all of them at once.
  t.test('what is needed and would go is told, and stays when asked', async (t) => {
    const store = await stores.make(t)
    const session = await cassandra.session(t)
    const entries = [
      entryOf(ACTOR, 1),
      entryOf(ACTOR, 2, { records: 0, v: 1 }),
      entryOf(ACTOR, 3, { records: 0, v: 1, s: [1, 7, 0] }),
      entryOf(ACTOR, 4, { v: 1 }),
    ]
    await write(store, [entries])
    const query = `UPDATE ${keyspace}.actor_entry USING TIMESTAMP ? AND TTL 1000 SET body = ?
                   WHERE pid = ? AND bucket = 0 AND n = ?`
    for (const n of [3, 4]) {
      const body = encodeBlob(n, encodeEntry(entries[n - 1]!))
      await session.put([{ query, params: [n, body, ACTOR, n] }])
    }
    const wanted = [3, 4].map((n) => {
      return new RegExp(`^actor_entry ${ACTOR} 0 ${n}: is needed and goes in \\d+ s`)
    })
    for (const [how, end] of [
      [{}, /goes in \d+ s$/],
      [{ repair: true }, /; it stays now$/],
    ] as const) {
      const { lines } = await verify(how)
      t.equal(lines.length, wanted.length, lines.join('; '))
      for (const [i, pattern] of wanted.entries()) t.match(lines[i], pattern)
      for (const line of lines) t.match(line, end)
    }
    t.same((await verify()).lines, [])
    t.equal(await expireRows(session, keyspace), 1, 'but the refusal that nobody needs')
    t.same((await verify()).lines, [])
  })

  t.test('behind an accepted loss all entries are needed', async (t) => {
    const store = await stores.make(t)
    const session = await cassandra.session(t)
    await write(store, [[entryOf(ACTOR, 1), entryOf(ACTOR, 2, { records: 0, v: 1 })]])
    t.same((await verify()).lines, [])
    await put(session, 'store', {
      query: 'SET losses = ? WHERE id = 0',
      params: [JSON.stringify([{ shard: 1, offset: 0, resumedAt: 1_000_000 }])],
    })
    t.match((await verify()).lines, [/^actor_entry \S+ 0 2: is needed and goes in \d+ s$/])
  })

  t.test('no store', async (t) => {
    const other = cassandra.options(t)
    const lines: string[] = []
    const report = await verifyCassandra(other, (line) => lines.push(line))
    t.match(report, { findings: 1, groups: 0 })
    t.same(lines, [`${other.keyspace}: holds no store`])
  })
})
