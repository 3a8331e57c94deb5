// Opening a store: made once, by however many members start at the same time; refused when it is
// another one than is configured. Source: PROTOCOL 3.0 "First start", 3.1.

import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { NIL_INCARNATION } from '../control.ts'
import { applySchema } from './schema.ts'
import type { SecretsKeyNames } from '../secrets-key.ts'
import { openCassandra } from './store.ts'
import { onBoth } from './testing/both.ts'

const SCHEMA = join(import.meta.dirname, 'schema')
const VERSION = readdirSync(SCHEMA).length
const fileOf = (version: number, name: string): string =>
  `${String(version).padStart(3, '0')}-${name}.cql`

await onBoth(t, 'stores', async (t, cassandra) => {
  const options = cassandra.options(t, { shards: 4 })
  const { keyspace } = options

  t.test('three members that start at once make one store', async (t) => {
    const upper = { ...options, keyspace: keyspace.toUpperCase() }
    const stores = await Promise.all([options, options, upper].map((own) => openCassandra(own)))
    for (const store of stores) t.teardown(() => store.close())
    const [first, ...others] = stores
    t.match(first!.identity, { format: 1, shards: 4, serial: 'LOCAL_SERIAL' })
    t.match(first!.identity.secret, /^[\w-]{43}$/)
    for (const { identity } of others) t.same(identity, first!.identity, 'its secret too')
    const rows = await others[0]!.control.shards()
    t.same(
      rows,
      [-1, 0, 1, 2, 3].map((shard) => {
        return { shard, epoch: 0, owner: '', incarnation: NIL_INCARNATION, segment: 1 }
      }),
    )
    const session = await cassandra.session(t)
    const [lock] = await session.read(`SELECT * FROM ${keyspace}.schema_version`, [])
    t.match(lock, { id: 0, version: VERSION, owner: null })
    const again = await openCassandra({ ...options, shards: null })
    t.same(again.identity, first!.identity, 'as the store says')
    await again.close()
  })

  t.test('members have the same key for secrets, and a newer one takes over', async (t) => {
    const [old, next] = [
      { current: 'old', known: ['old'] },
      { current: 'next', known: ['old', 'next'] },
    ]
    const opened = async (secretsKeys: SecretsKeyNames | null) => {
      const store = await openCassandra({ ...options, secretsKeys })
      await store.close()
      return store.identity.secretsKey
    }
    t.equal(await opened({ current: null, known: [] }), undefined)
    const both = await Promise.allSettled([opened(old), opened({ current: 'x', known: ['x'] })])
    const [won] = both.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    t.equal(
      both.filter(({ status }) => status === 'fulfilled').length,
      1,
      'of two at once one wins',
    )
    const winner = { current: 'old', known: ['old', won!] }
    t.equal(await opened(winner), 'old')
    await t.rejects(opened({ current: 'x', known: ['x'] }), { name: 'WrongSecretsKey' })
    await t.rejects(opened({ current: null, known: [] }), /this process has none/)
    t.equal(await opened(null), 'old', 'who reads no secrets needs none')
    t.equal(await opened(next), 'next')
    await t.rejects(opened(old), { name: 'WrongSecretsKey' })
    t.equal(await opened(next), 'next')
  })

  t.test('another store than is configured is refused', async (t) => {
    const refused = async (more: object, message: RegExp) => {
      const error = await openCassandra({ ...options, ...more }).catch((e: unknown) => e)
      t.match((error as Error).message, message)
    }
    await refused({ shards: 8 }, /made with 4 shards and 8 are configured \(KONTOR_SHARDS\)/)
    await refused({ serial: 'SERIAL' }, /made for the serial level LOCAL_SERIAL, SERIAL is/)
    await refused({ datacenter: 'elsewhere' }, /'elsewhere'.*datacenter1/s)
    await refused({ contactPoints: ['127.0.0.1:1'] }, /Cassandra at 127\.0\.0\.1:1: .*ECONNREFUSED/)
    const session = await cassandra.session(t)
    const set = (column: string, value: unknown) => {
      const query = `UPDATE ${keyspace}.store SET ${column} = ? WHERE id = 0`
      return session.put([{ query, params: [value] }])
    }
    await set('datacenter', 'far')
    await refused({}, /members of this store are in the data centre far, datacenter1 is configured/)
    await set('datacenter', 'datacenter1')
    await set('filling', 'a generation')
    await refused({}, /is being moved into it and is not whole/)
    await set('filling', null)
    await set('format', 2)
    await refused({}, /the store's format is 2, this version of Kontor reads up to 1/)
    await set('format', 1)
    const store = await openCassandra(options)
    await store.close()
  })

  t.test('what a crash has left out is made at the next start', async (t) => {
    const session = await cassandra.session(t)
    await session.conditional(`DELETE FROM ${keyspace}.shard WHERE shard = 2 IF EXISTS`, [])
    const store = await openCassandra(options)
    t.teardown(() => store.close())
    t.match(await store.control.shard(2), { epoch: 0, segment: 1 })
  })

  t.test('the number of shards of a new store', async (t) => {
    const more = cassandra.options(t, { shards: 3 })
    await t.rejects(openCassandra(more), { message: /power of two up to 4096: 3/ })
    const store = await openCassandra({ ...more, shards: 1 })
    t.equal((await store.control.shards()).length, 2)
    await store.close()
  })

  t.test('a newer schema is applied once, under the lock', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'kontor-schema-'))
    t.teardown(() => rmSync(folder, { recursive: true }))
    cpSync(SCHEMA, folder, { recursive: true })
    // Not to be run twice: a column that is there already is refused.
    writeFileSync(
      join(folder, fileOf(VERSION + 1, 'more')),
      '-- One more; column.\nALTER TABLE $keyspace.alias ADD more int;\n',
    )
    const session = await cassandra.session(t)
    const now = () => performance.now()
    const { datacenter } = options
    const apply = (last: number) => {
      const owner = NIL_INCARNATION.replace(/.$/, String(last))
      return applySchema(session, { keyspace, datacenter, replication: null, owner, now, folder })
    }
    await Promise.all([1, 2, 3].map(apply))
    const [row] = await session.read(`SELECT version, owner FROM ${keyspace}.schema_version`, [])
    t.match(row, { version: VERSION + 1, owner: null })
    await apply(4)
    const store = await openCassandra(options)
    await store.close()
    t.pass('an older program leaves a newer schema alone')

    const gap = fileOf(VERSION + 3, 'gap')
    writeFileSync(join(folder, gap), '')
    await t.rejects(apply(5), { message: new RegExp(`${gap} is out of order`) })
  })
})
