// Documents for the search engine and back: what goes in comes out, however long its texts are, and
// no term is longer than the engine takes.

import t from 'tap'
import fc from 'fast-check'
import { compareText } from '../../protocol/graph/evaluate.ts'
import { SCHEMA } from '../conformance/search-nodes.ts'
import { documentId, docOf, sourceOf } from './document.ts'
import { layoutOf, OWN, TERM_CHARS_MAX } from './layout.ts'
import { cut, keyOf, valueOf } from './members.ts'

const layout = layoutOf(SCHEMA)
const ACTOR = '0190b000-0000-7000-8000-000000000001'
const LONG = `${'x'.repeat(TERM_CHARS_MAX - 1)}😀 and more`

function through(node: string, doc: Record<string, unknown>): Record<string, unknown> {
  const write = { node, actorId: ACTOR, id: ACTOR, version: 1, doc, place: 3 }
  const source = JSON.parse(sourceOf(write, layout.nodes.get(node)!, 0)) as Record<string, unknown>
  return { source, own: source[OWN], doc: docOf(source) }
}

t.test('texts that are too long for a term are whole again', async (t) => {
  const doc = {
    libraryId: ACTOR,
    name: LONG,
    tags: ['a', LONG],
    address: { city: LONG, floor: 1, other: 'kept' },
    dynamic: { x: LONG },
    notes: [
      { noteId: 'n', body: LONG, unknown: { 'a.b': 1 } },
      { noteId: 'm', body: null },
    ],
  }
  const { source, own, doc: back } = through('library', { ...doc, motto: null })
  t.strictSame(back, doc)
  t.strictSame((own as { long: string[] }).long.toSorted(), [
    'address.city',
    'name',
    'notes',
    'tags',
  ])
  const { name, tags } = source as { name: string; tags: string[] }
  t.equal(name, 'x'.repeat(TERM_CHARS_MAX - 1), 'cut where no character is halved')
  t.equal(tags[1], name)
  t.ok(JSON.stringify((own as { members: unknown }).members).length < 2 * TERM_CHARS_MAX)
})

t.test('members that no index knows are left out, at the top', async (t) => {
  const { doc } = through('city', { cityId: ACTOR, code: 'N', surplus: 1 })
  t.strictSame(doc, { cityId: ACTOR, code: 'N' })
})

t.test('ids of any length are told apart', async (t) => {
  t.equal(documentId(ACTOR, 'a'), `${ACTOR}:a`)
  const one = documentId(ACTOR, 'é'.repeat(300))
  t.ok(Buffer.byteLength(one) <= 512)
  t.not(one, documentId(ACTOR, 'é'.repeat(301)))
})

t.test('values sort as what they stand for', async () => {
  const scalar = fc.oneof(
    fc.boolean(),
    fc.double({ noNaN: true }),
    fc.constantFrom(0, -0, 1, -1, 1e-300, -1e300),
    fc.string({ unit: 'grapheme' }),
  )
  const rank = (value: unknown): number => ['boolean', 'number', 'string'].indexOf(typeof value)
  fc.assert(
    fc.property(scalar, scalar, (a, b) => {
      const expected =
        rank(a) - rank(b) ||
        (typeof a === 'string' ? compareText(a, b as string) : Number(a) - Number(b))
      return Math.sign(compareText(valueOf(a), valueOf(b))) === Math.sign(expected)
    }),
    { numRuns: 2_000 },
  )
})

t.test('keys of different paths differ, and hold nothing that means something', async () => {
  const path = fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(path, path, (a, b) => {
      const [x, y] = [keyOf('S', a), keyOf('S', b)]
      if (/[.*\0]/.test(x)) throw new Error(x)
      return (x === y) === (JSON.stringify(a) === JSON.stringify(b))
    }),
  )
})

t.test('a cut is the beginning, whole characters, no longer than a term', async () => {
  fc.assert(
    fc.property(fc.nat(3), fc.nat(4), (pad, tail) => {
      const text = 'y'.repeat(TERM_CHARS_MAX - 2 + pad) + '😀'.repeat(tail)
      const short = cut(text)
      return text.startsWith(short) && short.isWellFormed() && short.length <= TERM_CHARS_MAX
    }),
  )
})
