// What live queries may hold, of one list and of one caller, and that what goes makes room.

import t from 'tap'
import { LIMITS } from '../../../config/limits.ts'
import { overrideLimits } from '../../../config/testing/override-limits.ts'
import { OWNER_ACL } from '../../../protocol/ace.ts'
import { FakeClient, ItemStore, LiveMember } from './testing/live-stage.ts'

const CHARS = 100_000
/** Two lists of one such item each, with what their queries take, and one more query. */
const ROOM = 2.6 * CHARS
const large = (rank: number) => ({ state: 'x'.repeat(CHARS), rank })

function scene() {
  const store = new ItemStore()
  const member = new LiveMember(store)
  const client = new FakeClient(member, OWNER_ACL)
  const told = async (): Promise<unknown[]> => {
    await member.clock.advance(LIMITS.live.queryRowsMs * 4)
    return client.sent.splice(0).map(({ type, code }) => code ?? type)
  }
  /** Of items of this rank. */
  const open = async (rank: number): Promise<unknown[]> => {
    const query = {
      edge: 'items',
      filter: `rank == ${rank}`,
      node: { fields: ['itemId', 'state'] },
    }
    client.say({ type: 'createLiveQuery', liveQueryId: `q${rank}`, query })
    return told()
  }
  return { store, member, client, told, open }
}

t.test(
  'a list holds so much: one that grows past it ends, one that would does not begin',
  async (t) => {
    t.teardown(overrideLimits({ 'live.queryCharsMax': CHARS }))
    const { store, member, told, open } = scene()
    store.set(1, { state: 'x', rank: 1 })
    t.strictSame(await open(1), ['liveQueryCreated'])
    store.set(1, large(1))
    member.tell(false)
    t.strictSame(await told(), ['TOO_LARGE'])
    t.strictSame(await open(1), ['TOO_LARGE'])
    t.equal(member.queries.size, 0)
  },
)

t.test('a caller has so much in all lists, and what goes makes room', async (t) => {
  t.teardown(overrideLimits({ 'live.queriesCharsMax': 2 * ROOM }))
  const { store, member, client, told, open } = scene()
  for (const rank of [1, 2, 3, 4]) store.set(rank, large(rank))
  t.strictSame(await open(1), ['liveQueryCreated'])
  t.strictSame(await open(2), ['liveQueryCreated'])
  t.strictSame(await open(3), ['TOO_BUSY'])
  t.equal(member.queries.size, 2, 'others stay')
  t.strictSame(await open(5), ['liveQueryCreated'], 'it holds nothing')
  store.set(5, large(5))
  member.tell(false)
  t.strictSame(await told(), ['TOO_BUSY'], 'until it does')
  client.say({ type: 'deleteLiveQuery', liveQueryId: 'q1' })
  t.strictSame(await told(), ['liveQueryDeleted'])
  t.strictSame(await open(3), ['liveQueryCreated'])
  client.close()
  t.equal(member.queries.size, 0)
  t.equal(member.queries.heldChars, 0)
})
