// The configuration that a member has at hand: entries are folded once and in order, keys are found
// by what they begin with in the order of code points, watchers hear of what changes, and an image
// replaces all of it. Source: PROTOCOL 3.0 "The system shard".

import t from 'tap'
import { LIMITS } from '../config/limits.ts'
import type { ActorRecord, Behaviour } from '../protocol/behaviour.ts'
import type { Entry } from '../protocol/entry/entry.ts'
import { SystemMaps } from './system-view.ts'

/** As configuration actors are: `put` and `deleted`. */
const setting = {
  type: 'setting',
  evolve: (state: object | null, record: ActorRecord) =>
    record.t === 'put' ? { value: record['value'], deleted: false } : { ...state, deleted: true },
  toSnapshot: (state: unknown) => state,
  fromSnapshot: (state: unknown) => state,
} as unknown as Behaviour
const BEHAVIOURS = new Map([['setting', setting]])

function put(q: string, v: number, ...values: readonly (string | null)[]): Entry {
  const r = values.map((value) => (value === null ? { t: 'deleted' } : { t: 'put', value }))
  const fixed = { y: 'setting', n: v + 1, m: 'm', l: 0 as const, t: 0, c: 0, b: 'me' }
  return { ...fixed, p: `actor of ${q}`, q, v, r, a: { type: 'put', success: true } }
}

function mapsOf(entries: readonly Entry[]): SystemMaps {
  const maps = new SystemMaps(BEHAVIOURS)
  for (const [i, entry] of entries.entries()) maps.follow(entry, i + 1)
  return maps
}

const keys = (maps: SystemMaps, prefix = ''): string[] =>
  [...maps.withPrefix('setting', prefix)].map(({ key }) => key)

t.test('an entry is folded once, and what changes nothing moves the offset', (t) => {
  const maps = mapsOf([put('a', 0, '1', '2')])
  t.match(maps.get('setting', 'a'), { key: 'a', actorId: 'actor of a', version: 2, value: '2' })
  maps.follow(put('a', 0, 'again'), 1)
  t.match(maps.get('setting', 'a'), { version: 2, value: '2' })
  maps.follow(put('a', 2), 2)
  t.equal(maps.offset, 2)
  maps.follow({ ...put('a', 2, 'x'), q: undefined as never }, 3)
  t.equal(maps.offset, 3)
  maps.follow(put('refused', 0), 4)
  t.equal(maps.offset, 4)
  t.equal(maps.size('setting'), 1)
  maps.follow(put('a', 2, '3'), 5)
  t.match(maps.get('setting', 'a'), { version: 3, value: '3' })
  t.equal(maps.get('setting', 'b'), null)
  t.equal(maps.get('nothing', 'a'), null)
  t.equal(maps.size('nothing'), 0)
  t.same([...maps.withPrefix('nothing', '')], [])
  t.end()
})

t.test('keys that begin with a text, in the order of code points', (t) => {
  const order = [
    '',
    'A',
    'a',
    'a/',
    'a/1',
    'a/1/2',
    'a/2',
    'a\u00E9',
    'a\uE000',
    'a\uFFFD',
    'a😀',
    'b',
  ]
  const maps = mapsOf(order.toReversed().map((key) => put(key, 0, 'x')))
  t.same(keys(maps), order)
  t.same(keys(mapsOf(order.map((key) => put(key, 0, 'x')))), order)
  t.same(keys(maps, 'a/'), ['a/', 'a/1', 'a/1/2', 'a/2'])
  t.same(keys(maps, 'a😀'), ['a😀'])
  t.same(keys(maps, 'c'), [])
  maps.follow(put('a/0', 0, 'x'), 20)
  maps.follow(put('a/1', 1, null), 21)
  t.same(keys(maps, 'a/'), ['a/', 'a/0', 'a/1/2', 'a/2'], 'as it is now')
  t.equal(maps.size('setting'), order.length)
  maps.follow(put('a/1', 2, 'y'), 22)
  t.same(keys(maps, 'a/1'), ['a/1', 'a/1/2'])
  t.end()
})

t.test('who watches a type hears of each change, until it has enough', (t) => {
  const maps = new SystemMaps(BEHAVIOURS)
  const told: unknown[] = []
  const end = maps.onChange('setting', (key, entry) => told.push([key, entry?.value ?? null]))
  maps.follow(put('a', 0, '1'), 1)
  maps.follow(put('a', 1, '2'), 2)
  maps.follow(put('a', 2, null), 3)
  end()
  maps.follow(put('b', 0, '1'), 4)
  t.same(told, [
    ['a', '1'],
    ['a', '2'],
    ['a', null],
  ])
  t.end()
})

t.test('an image tells what is another, what is new and what is gone, and nothing else', (t) => {
  const maps = mapsOf([
    put('same', 0, '1'),
    put('changed', 0, '1'),
    put('gone', 0, '1'),
    put('other', 0, '1'),
  ])
  const now = mapsOf([
    put('same', 0, '1'),
    put('changed', 0, '1', '2'),
    { ...put('other', 0, '1'), p: 'another actor' },
    put('new', 0, '1'),
  ])
  t.same(keys(maps), ['changed', 'gone', 'other', 'same'])
  const told: unknown[] = []
  maps.onChange('setting', (key, entry) =>
    told.push([key, entry?.value ?? null, keys(maps).length]),
  )
  t.throws(() => maps.load(4, [...now.image()]), /forward/)
  maps.load(5, [...now.image()])
  t.same(told, [
    ['gone', null, 4],
    ['changed', '2', 4],
    ['other', '1', 4],
    ['new', '1', 4],
  ])
  t.equal(maps.offset, 5)
  t.same(keys(maps), ['changed', 'new', 'other', 'same'])
  maps.follow(put('new', 1, '2'), 5)
  maps.follow(put('new', 1, '3'), 6)
  t.match(maps.get('setting', 'new'), { version: 2, value: '3' })
  t.end()
})

t.test('an image of nothing: all is gone', (t) => {
  const maps = mapsOf([put('a', 0, '1')])
  const told: unknown[] = []
  maps.onChange('setting', (key, entry) => told.push([key, entry]))
  maps.load(9, [...new SystemMaps(BEHAVIOURS).image()])
  t.same(told, [['a', null]])
  t.same(keys(maps), [])
  t.end()
})

t.test('an image is of one moment, in parts that are filled', (t) => {
  const value = 'x'.repeat(10_000)
  const maps = mapsOf(Array.from({ length: 600 }, (_, i) => put(`${i}`, 0, value)))
  const parts: Buffer[] = []
  for (const part of maps.image()) {
    if (parts.length === 0) maps.follow(put('later', 0, 'x'), 1_000)
    parts.push(part)
  }
  const all = parts.reduce((sum, { length }) => sum + length, 0)
  t.ok(parts.length > 1)
  t.ok(parts.every(({ length }) => length <= LIMITS.storage.imageChunkBytes))
  t.equal(
    parts.length,
    Math.ceil(all / LIMITS.storage.imageChunkBytes),
    'no more than there have to be',
  )
  const found = new SystemMaps(BEHAVIOURS)
  found.load(600, parts)
  t.equal(found.size('setting'), 600)
  const large = mapsOf([
    put('a', 0, 'x'),
    put('b', 0, 'x'.repeat(2 * LIMITS.storage.imageChunkBytes)),
  ])
  t.equal([...large.image()].length, 2, 'a larger item is a part of its own')
  t.end()
})
