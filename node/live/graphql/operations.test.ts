// Operations of one connection whose ids come again, and whose fields become others. Source:
// CONTRACT 1.4.1.

import t from 'tap'
import { ITEM } from '../queries/testing/live-stage.ts'
import { connectionScene as scene, settled, subscribe, until } from './testing/connection-scene.ts'

t.test('what is told goes by the fields as they are, not as they were when it began', async (t) => {
  const offering = (...values: string[]) => ({
    ...ITEM,
    fields: [...ITEM.fields, { name: 'kind', type: 'enum' as const, values }],
  })
  const { signIn, lists } = scene(t, undefined, offering('x'))
  const put = (kind: string): void => lists.put(1, { state: 'a', rank: 1, kind } as never)
  put('x')
  const socket = await signIn()
  subscribe(socket, '1', 'subscription { items { node { kind } nodes { kind } } }')
  await until('it has its list', () => socket.sent.length === 2)
  lists.become(offering('x', 'y'))
  socket.sent.length = 0
  put('y')
  await until('it is told', () => socket.sent.length > 0)
  const [{ payload }] = socket.sent as [{ payload: Record<string, unknown> }]
  t.equal(payload['errors'], undefined)
  t.match(JSON.stringify(payload), /"kind":"y"/)
})

t.test('an id is used again before its former answer came', async (t) => {
  const answers: ((json: string) => void)[] = []
  const { signIn, lists } = scene(t, () => {
    return new Promise((resolve) => answers.push((json) => resolve({ json })))
  })
  const socket = await signIn()
  const asked = (times: number): Promise<void> =>
    until(`${times} asked`, () => answers.length === times)
  subscribe(socket, 'q', '{ items { state } }')
  await asked(1)
  socket.says({ type: 'complete', id: 'q' })
  subscribe(socket, 'q', '{ items { rank } }')
  await asked(2)
  socket.sent.length = 0
  answers[0]!('{"__e0":[{"state":"former"}]}')
  await settled()
  t.strictSame(socket.sent, [], 'what was given up is not told')
  answers[1]!('{"__e0":[{"rank":1}]}')
  await until('it is complete', () => socket.sent.length === 2)
  t.match(socket.sent.splice(0), [
    { id: 'q', type: 'next', payload: { data: { items: [{}] } } },
    { id: 'q', type: 'complete' },
  ])
  for (let i = 0; i < 3; i++) {
    subscribe(socket, 'q')
    socket.says({ type: 'complete', id: 'q' })
  }
  subscribe(socket, 'q')
  await until('it has its list', () => socket.sent.some(({ type }) => type === 'next'))
  socket.says({ type: 'complete', id: 'q' })
  subscribe(socket, 'q')
  await settled()
  t.notOk(socket.sent.some(({ type }) => type === 'complete' || type === 'error'))
  t.strictSame([lists.standing, socket.code], [1, null])
  subscribe(socket, 'q')
  await settled()
  t.strictSame([socket.code, socket.reason], [4409, 'Subscriber for q already exists'])
  t.equal(lists.standing, 0)
})
