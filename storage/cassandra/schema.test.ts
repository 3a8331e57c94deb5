// Changes of the schema: under a lock that is kept for as long as they take and ends by itself, in
// a keyspace with copies where the members are. Source: ARCHITECTURE 3 "schema changes".

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { applySchema, type SchemaOptions } from './schema.ts'
import { TwinCassandra } from './testing/twin.ts'

const OWNER = '00000000-0000-7000-8000-000000000001'
const OTHER = '00000000-0000-7000-8000-000000000002'

/** A folder of files with these statements; a keyspace, and how it is brought up to date. */
async function scene(t: Test, ...files: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'kontor-schema-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const add = (text: string, i: number): void => {
    writeFileSync(join(folder, `00${i + 1}-file.cql`), text)
  }
  files.forEach(add)
  const twin = new TwinCassandra(t)
  const session = await twin.session(t)
  const { keyspace, datacenter, now } = twin.options(t)
  const fixed = { keyspace, datacenter, replication: null, owner: OWNER, now, folder }
  const apply = (more: Partial<SchemaOptions> = {}) => applySchema(session, { ...fixed, ...more })
  const lock = async () => {
    const [row] = await session.read(`SELECT version, owner FROM ${keyspace}.schema_version`, [])
    return [row!['version'], row!['owner'] === null ? null : String(row!['owner'])]
  }
  const replication = async () => {
    const query = 'SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?'
    return (await session.read(query, [keyspace]))[0]!['replication'] as object
  }
  return { twin, session, keyspace, apply, add, lock, replication }
}

const table = (name: string): string =>
  `CREATE TABLE IF NOT EXISTS $keyspace.${name} (id int PRIMARY KEY, text text);`

t.test('a keyspace is made with as many copies as there are nodes, or as is said', async (t) => {
  const own = { class: 'NetworkTopologyStrategy' }
  const { apply, replication, lock } = await scene(t, table('one'))
  await apply()
  t.same(await replication(), { ...own, datacenter1: '1' })
  t.same(await lock(), [1, null])
  await apply({ replication: 3 })
  t.same(await replication(), { ...own, datacenter1: '1' }, 'one that is there stays')
  const more = await scene(t, table('one'))
  await more.apply({ replication: 2 })
  t.same(await more.replication(), { ...own, datacenter1: '2' })
})

t.test('one that has no copies where the members are is refused', async (t) => {
  const { apply, session, keyspace } = await scene(t, table('one'))
  const make = (replication: string) =>
    session.define(`CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = {${replication}}`)
  await make("'class': 'org.apache.cassandra.locator.NetworkTopologyStrategy', 'far': 3, 'off': 1")
  await t.rejects(apply(), {
    message: /no copies in the data centre datacenter1 \(KONTOR_\w+\), but in far, off:/,
  })
  const simple = await scene(t, table('one'))
  await simple.session.define(
    `CREATE KEYSPACE IF NOT EXISTS ${simple.keyspace}
     WITH replication = {'class': 'SimpleStrategy', 'replication_factor': '1'}`,
  )
  await t.resolves(simple.apply(), 'one without data centres is everywhere')
})

t.test('the lock is kept for as long as the changes take', async (t) => {
  const { apply, twin, lock, add } = await scene(t, table('one') + table('two') + table('three'))
  twin.fault = (query) => {
    if (/^CREATE TABLE .*(one|two|three)/.test(query)) {
      twin.aheadMs += (LIMITS.cassandra.schemaLockSeconds - 10) * 1_000
    }
    return null
  }
  await apply()
  t.same(await lock(), [1, null])
  add(table('four'), 1)
  await apply({ owner: OTHER })
  t.same(await lock(), [2, null])
})

t.test('who has lost it goes no further, and the next one goes on from there', async (t) => {
  const { apply, twin, lock, session, keyspace } = await scene(
    t,
    table('one'),
    table('two') + table('three'),
  )
  const made: string[] = []
  twin.fault = (query) => {
    const name = /^CREATE TABLE .*\.(one|two|three) /.exec(query)?.[1]
    if (name !== undefined) made.push(name)
    if (name === 'two' && made.length === 2)
      twin.aheadMs += LIMITS.cassandra.schemaLockSeconds * 1_000
    return null
  }
  await t.rejects(apply(), { message: /the change of the schema took too long: start again/ })
  t.same(made, ['one', 'two'])
  t.same(await lock(), [1, null])
  await apply({ owner: OTHER })
  t.same(made, ['one', 'two', 'two', 'three'], 'what was applied whole is not applied again')
  t.same(await lock(), [2, null])
  t.equal(await session.knows(`${keyspace}.three`), true)
  t.equal(await session.knows(`${keyspace}.four`), false)
})

t.test("another's lock is waited for, and not for ever", async (t) => {
  const { apply, session, keyspace, add, lock } = await scene(t, table('one'))
  await apply()
  add(table('two'), 1)
  const hold = `UPDATE ${keyspace}.schema_version SET owner = ? WHERE id = 0 IF owner = null`
  t.equal(await session.conditional(hold, [OTHER]), 'applied')
  let ms = 0
  const now = (): number => (ms += LIMITS.cassandra.schemaWaitMs / 2)
  await t.rejects(apply({ now }), {
    message: /another member has been changing the schema for 90 s/,
  })
  t.same(await lock(), [1, OTHER])
  const waiting = apply()
  const free = `UPDATE ${keyspace}.schema_version SET owner = null WHERE id = 0 IF owner = ?`
  t.equal(await session.conditional(free, [OTHER]), 'applied')
  await waiting
  t.same(await lock(), [2, null])
})

t.test('files without gaps in their numbers', async (t) => {
  const { apply, add } = await scene(t, table('one'))
  add(table('three'), 2)
  await t.rejects(apply(), { message: /003-file\.cql is out of order/ })
})
