// Lines of bulk that are no good: each is told what is wrong with it, with its id where it has one.
// Source: CONTRACT 0 "Bulk".

import t from 'tap'
import { noteOrder } from '../testing/note-order.ts'
import type { ActorType } from './actor-type.ts'
import { failedLine, readLine } from './bulk-line.ts'

const type: ActorType = {
  resource: 'actors/order',
  path: '/resources/actors/order/',
  behaviour: noteOrder,
}
const messages = [{ type: 'read' }]
const read = (value: unknown) => readLine(type, Buffer.from(JSON.stringify(value)))

t.test('what is no line', (t) => {
  for (const value of [7, 'text', true, null, [], [{ id: 'A', messages }]]) {
    const found = read(value)
    t.match(
      found,
      { ok: false, id: null, error: { message: /^a line is / } },
      JSON.stringify(value),
    )
  }
  t.match(read({ messages }), { ok: false, id: null, error: { message: /needs an "id"/ } })
  t.match(read({ id: 7, messages }), { ok: false, id: null, error: { message: /needs an "id"/ } })
  t.match(read({ id: 'A', messages, more: 1 }), {
    ok: false,
    id: null,
    error: { message: /a member "more"/ },
  })
  t.match(read({ id: 'A', messages: {} }), { ok: false, id: 'A' })
  t.match(readLine(type, 'too-large'), {
    ok: false,
    id: null,
    error: { errors: [{ code: 'TOO_LARGE' }] },
  })
  t.match(readLine(type, Buffer.from('{')), { ok: false, id: null })
  t.end()
})

t.test('an answer repeats little of what was sent', (t) => {
  const long = 'x'.repeat(100_000)
  for (const line of [
    { id: long, messages },
    { id: 'A', messages, [long]: 1 },
  ]) {
    const found = read(line)
    t.match(found, { ok: false })
    if (!found.ok) t.ok(failedLine(1, found.id, found.error).length < 1_000)
  }
  t.end()
})

t.test('a key of a line: a text, or none', (t) => {
  const keyed = (idempotencyKey: unknown) => read({ id: 'A', messages, idempotencyKey })
  for (const key of ['', 7, {}, ['k'], false, 0]) {
    const error = { message: /^idempotencyKey should be a text/ }
    t.match(keyed(key), { ok: false, id: 'A', error }, JSON.stringify(key))
  }
  for (const key of [null, undefined])
    t.match(keyed(key), { ok: true, line: { idempotencyKey: null } })
  t.match(keyed('k-1'), { ok: true, line: { idempotencyKey: 'k-1' } })
  t.end()
})
