// `?explain`: who may ask, and what is answered through the routes, in parts of a clock that stands
// still.

import t from 'tap'
import { A, ask, refusal, stage } from './testing/graph-stage.ts'

const body = [
  {
    edge: 'notebooks',
    filter: `title == 'one'`,
    node: { fields: ['title'], navigate: [{ edge: 'notes', node: { fields: ['text'] } }] },
  },
]
const url = { explain: '' }

t.test('answers plan, engine and timings instead of the data, by POST and GET', async (t) => {
  const s = await stage(t)
  await s.store.commit([A, { t: 'opened', title: 'one' }, { t: 'noted', id: 'n', text: 'x' }])
  await s.follow()
  s.beforeTurn = () => s.clock.advance(7)
  const expected = {
    plan: [
      { at: '/0', name: 'notebooks', filter: 'title:text == "one" (as text)', fields: ['title'] },
      { at: '/0/node/navigate/0', name: 'notes' },
    ],
    engine: {
      name: 'memory',
      steps: [
        { at: '/0', parents: null, rows: 1 },
        { at: '/0/node/navigate/0', parents: 1, rows: 1 },
      ],
    },
    timings: { totalMs: 7, queueMs: 7, planningMs: 0, consistencyMs: 0 },
  }
  t.match(await ask(s, { body, url }), expected)
  t.match(await ask(s, { method: 'GET', q: JSON.stringify(body), url }), expected)
  t.match(await ask(s, { body, url: { explain: 'true' } }), expected)
  const data = { notebooks: [{ title: 'one', notes: [{ text: 'x' }] }] }
  t.strictSame(await ask(s, { body, url: { explain: 'false' } }), data)
  t.strictSame(await ask(s, { body }), data, 'its plan is not taken for one that explains')
  t.match(await ask(s, { body, url }), expected, 'nor the other way round')
})

t.test('needs graph:explain beside what the query needs', async (t) => {
  const s = await stage(t)
  const asked = (scope: string) => refusal(s, { body, url, scope })
  const fields = 'graph/notebook:query graph/note:query graph/notebook:field graph/note:field'
  t.equal(await asked(fields), '403 FORBIDDEN')
  t.equal(await asked('graph:query graph:field'), '403 FORBIDDEN')
  t.equal(await asked(`${fields} graph:explain`), 'none')
  t.equal(await asked('graph:*'), 'none')
  t.equal(await asked('graph:explain'), '403 FORBIDDEN_NODE')
  t.equal(await asked('graph/notebook:query graph/note:query graph:explain'), '403 FORBIDDEN_FIELD')
  t.equal(await refusal(s, { body: [{ edge: 'poems' }], url }), '400 INVALID_QUERY')
})

t.test('entries on single nodes are told without the nodes', async (t) => {
  const s = await stage(t)
  const scope = `graph/notebook/${A}:query graph/note:query graph:field graph:explain`
  const told = (await ask(s, { body, url, scope })) as { plan: { access: string }[] }
  t.equal(told.plan[0]!.access, 'notebook: notebookId:text in [?]')
  t.notMatch(JSON.stringify(told), A)
})
