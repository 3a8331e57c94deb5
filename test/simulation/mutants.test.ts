// Every mutant is caught: by the directed schedule that it has, or by seeds. And the list of the
// protocol is complete.

import t from 'tap'
import { checkPatches, patched } from './mutant-loader.ts'
import { MUTANTS } from './mutants.ts'
import { simulate } from './testing/simulate.ts'

/** PROTOCOL 4.1. */
const NAMED = [
  ...['no-epoch', 'no-head', 'early-ack', 'no-dedup', 'marks-in-memory', 'marks-lost-by-snapshot'],
  ...['rejections-unrecorded', 'timeout-is-failure', 'retry-with-new-content'],
  ...['static-rows-trimmed', 'previous-segment-unfenced', 'replay-one-late'],
  ...['claim-ignores-incarnation', 'join-without-waiting', 'read-without-lease'],
  ...['wall-clock-lease', 'preview-before-commit', 'reservation-freed-by-timer'],
  ...['relay-before-commit', 'relay-without-offsets', 'hard-index-deletes'],
  ...['internal-index-versions', 'index-offset-before-result', 'beat-ignores-state'],
  ...['marks-by-wall-clock', 'prefetch-forgets-flushed', 'refusal-with-open-copies'],
  ...['unseal-after-unknown', 'flush-without-counters', 'snapshot-before-marks'],
  ...['removed-nodes-by-diff', 'claim-by-name', 'member-read-before-shard'],
  ...['handoff-seals-no-reads', 'fenced-is-committed', 'hinted-segment-only'],
  ...['closed-unheard'],
  ...['refusals-expire-in-the-middle', 'refusals-go-from-the-front', 'keys-by-the-wall-clock'],
  ...['spill-by-another-weight', 'refusal-replaces-answer', 'ids-after-filtering'],
  ...['refusals-at-the-edge-unrecorded'],
  ...['quarantine-stops-counting', 'dead-turns-go-on', 'relay-second-message-taken'],
  ...['relay-by-key-swallowed', 'trim-passes-relayed', 'image-keeps-deleted'],
  ...['no-lease-before-caches', 'bound-forgotten-on-load', 'number-on-the-way-stays'],
  ...['clock-without-lease', 'records-expire', 'claims-wait-in-a-circle', 'younger-waits'],
  ...['younger-each-time', 'holds-behind-a-turn', 'under-way-is-void'],
  ...['gap-untold', 'newest-state-told'],
]

const WITHIN_MS = 560_000
const AT_ONCE = 2
const SAID_SHOWN = 400

t.setTimeout(WITHIN_MS + 20_000)

t.test('all mutants of the protocol are there, under names of their own', async (t) => {
  const names = MUTANTS.map(({ name }) => name)
  t.strictSame(
    NAMED.filter((name) => !names.includes(name)),
    [],
  )
  t.equal(new Set(names).size, names.length)
})

t.test('a patch fits exactly one place, or it is an error', async (t) => {
  const patch = { file: 'some.ts', find: 'a', replace: 'x' }
  t.equal(patched('b a c', patch), 'b x c')
  t.throws(() => patched('b c', patch), /no such text any more/)
  t.throws(() => patched('a b a', patch), /more than once/)
  for (const mutant of MUTANTS) checkPatches(mutant)
  const rotten = {
    name: 'rotten',
    why: '',
    patches: [{ ...patch, file: 'package.json', find: '%%' }],
  }
  t.throws(() => checkPatches(rotten), /rotten has to be mended/)
})

t.test('every mutant is caught', async (t) => {
  const left = MUTANTS.map(({ name }) => name)
  const lane = async (): Promise<void> => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const args = ['--once', '--seeds', '300', '--mutant', name]
      const { code, said } = await simulate(args, WITHIN_MS)
      t.equal(code, 1, `${name}: ${said.slice(0, SAID_SHOWN)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
})
