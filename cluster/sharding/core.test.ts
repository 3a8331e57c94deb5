// What may be said of a request of which a part may be in the log. Source: PROTOCOL 3.6 (edge 3).

import t from 'tap'
import { errorItem } from '../../protocol/errors.ts'
import type { WireReply } from '../../protocol/message.ts'
import { doubted } from './core.ts'

t.test('of what is done in part "nothing was done" is never said', (t) => {
  t.match(doubted({ outcome: 'refused', error: errorItem('TOO_BUSY', 'later') }), {
    outcome: 'unknown',
    error: { code: 'OUTCOME_UNKNOWN' },
  })
  const owner = { incarnation: 'b', epoch: 2 }
  t.same(doubted({ outcome: 'moved', shard: 3, owner }), {
    outcome: 'moved',
    shard: 3,
    owner,
    taken: true,
  })
  const others: readonly WireReply[] = [
    { outcome: 'unknown', error: errorItem('OUTCOME_UNKNOWN', 'nobody knows') },
    { outcome: 'answered', actorId: null, keys: [], results: [], position: null },
  ]
  for (const reply of others) t.same(doubted(reply), reply)
  t.end()
})
