// The graph's checkers with what they must let pass, and with one mistake of each kind that they
// must find.

import t from 'tap'
import type { Look, ShownLedger } from '../clients/operation-history.ts'
import type { Ledger } from '../clients/ledger.ts'
import { nodesOfLedger, projectLedger } from '../clients/ledger.ts'
import { LEDGER, OPENED, appended, entry, logOf } from '../testing/scene.ts'
import { checkGraph, checkLooks } from './graph.ts'

/** Opened, then a and b at once, then a struck. */
const LOG = logOf(
  entry(1, 0, [OPENED]),
  entry(2, 1, [appended('a'), appended('b')]),
  entry(3, 3, [{ t: 'struck', token: 'a' }]),
)

let looks = 0
/** A look that waits for the first of these offsets. */
const look = (offset: number, shown: ShownLedger | null): Look => ({
  ...{ id: looks++, client: 'client', ledgerId: LEDGER, shown },
  position: { shard: 0, offset },
})
const ledger = (size: number, ...tokens: string[]): ShownLedger => ({ size, tokens })

t.test('K7: a look shows what was written, and more as time goes', async (t) => {
  const first = look(1, ledger(0))
  t.strictSame(checkLooks([first, look(2, ledger(2, 'a', 'b')), look(3, ledger(2, 'b'))], LOG), [])
  t.strictSame(checkLooks([look(1, ledger(2, 'b'))], LOG), [], 'it may show what came later')
  t.match(
    checkLooks([look(2, ledger(0))], LOG).join(),
    /K7: .* as 0 tokens .*, state 0, after .* made 1/,
  )
  const struckAfter = [look(3, ledger(2, 'a', 'b'))]
  t.match(checkLooks(struckAfter, LOG).join(), /K7: .* state 1, after a write that made 2/)
  const back = [look(1, ledger(2, 'a', 'b')), look(1, ledger(0))]
  t.match(checkLooks(back, LOG).join(), /K7: .* state 0, after a look at 1/)
})

t.test('K9: a look shows a ledger as it was at some time', async (t) => {
  const problem = (shown: ShownLedger): string => checkLooks([look(1, shown)], LOG).join()
  t.equal(problem(ledger(2, 'a', 'b')), '')
  t.match(problem(ledger(1, 'a')), /K9: .* as 1 tokens with a, which it never was/)
  t.match(problem(ledger(2, 'a')), /K9/, 'half of a batch')
  t.match(problem(ledger(0, 'b')), /K9/, 'a token that its ledger does not count yet')
  t.match(problem(ledger(2, 'b', 'a')), /K9/, 'another order')
  t.match(checkLooks([look(1, null)], LOG).join(), /K9: .* as nothing, which it never was/)
})

t.test('K5: the index shows the fold, no more and no less', async (t) => {
  const state = LOG.actors.get(LEDGER)!.states.at(-1) as Ledger
  const text = (doc: object): string => JSON.stringify(Object.entries(doc).toSorted())
  const right = nodesOfLedger(state).map(
    (ref) => [`${LEDGER} ${ref.node} ${ref.id}`, text(projectLedger(state, ref)!.doc)] as const,
  )
  const problem = (shown: readonly (readonly [string, string])[]): string =>
    checkGraph(new Map(shown), LOG).join()
  t.equal(problem(right), '')
  t.match(problem(right.slice(1)), /K5: the index lacks/)
  t.match(problem([...right.slice(1), [right[0]![0], '[]']]), /K5: the index shows .* as \[\], not/)
  t.match(problem([...right, [`${LEDGER} token a`, '[]']]), /which there is not/)
})
