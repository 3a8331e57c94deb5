// Mutants of the log: the conditions of its statements, the fence of a claim, unknown outcomes,
// rolls and trims. Source: PROTOCOL 3.1, 3.2, 3.5.

import type { Mutant } from './mutant.ts'

const STATEMENTS = 'storage/memory/statements.ts'
const APPEND_CONDITION =
  'if (!found || found.epoch !== epoch || found.head !== head || found.sealed)'

export const STORE_MUTANTS: readonly Mutant[] = [
  {
    name: 'no-epoch',
    directed: 'stale-append',
    why: 'an owner that was fenced still appends: its answers leave, and reads elsewhere miss them',
    patches: [
      {
        file: STATEMENTS,
        find: APPEND_CONDITION,
        replace: 'if (!found || found.head !== head || found.sealed)',
      },
    ],
  },
  {
    name: 'no-head',
    why: 'a batch that lands late, or twice, is appended over what was committed meanwhile',
    patches: [
      {
        file: STATEMENTS,
        find: APPEND_CONDITION,
        replace: 'if (!found || found.epoch !== epoch || found.sealed)',
      },
    ],
  },
  {
    name: 'timeout-is-failure',
    why: 'an append that timed out is called failed, and lands afterwards',
    first: 4,
    patches: [
      {
        file: 'cluster/sharding/commit/group-commits.ts',
        find: '        this.#unsure = true\n        this.#resolve(group)',
        replace: "        shard.rollBack(refused(errorItem('UNAVAILABLE', 'it has failed')))",
      },
    ],
  },
  {
    name: 'retry-with-new-content',
    why: 'after a timeout other bytes are sent in the same epoch: the first may be there as well',
    first: 4,
    patches: [
      {
        file: 'cluster/sharding/commit/unknown.ts',
        find: '    const [again] = await log.append([sent])',
        replace:
          '    const commitId = this.#shard.context.newUuid()\n' +
          '    const [again] = await log.append([{ ...sent, commitId }])',
      },
    ],
  },
  {
    name: 'fenced-is-committed',
    directed: 'fenced-answer',
    why: 'a batch that the store refuses for its epoch is acknowledged',
    patches: [
      {
        file: 'cluster/log/segmented-log.ts',
        find:
          '    if (statics.lastCommit === commitId || (await this.#hasRow(group))) ' +
          "return 'committed'",
        replace: "    if (statics.epoch >= epoch) return 'committed'",
      },
    ],
  },
  {
    name: 'static-rows-trimmed',
    why: 'a writer paused since before the trim finds an empty partition and begins a second chain',
    patches: [
      {
        file: STATEMENTS,
        find: '    if (found) found.rows = found.rows.filter(({ offset }) => offset > upTo)',
        replace:
          '    if (!found) return\n' +
          '    found.rows = found.rows.filter(({ offset }) => offset > upTo)\n' +
          '    if (found.rows.length === 0) this.#state.segments.delete(nameOf(of))',
      },
    ],
  },
  {
    name: 'previous-segment-unfenced',
    why: 'a claim opens the next segment, and the older owner goes on in the one before',
    patches: [
      {
        file: 'cluster/log/claim.ts',
        find:
          '  let statics = await patiently(options, () => ' +
          'fenceOnce(options, { shard, segment }, epoch))',
        replace:
          '  let statics = { ...(await options.segments.statics(hinted))!, sealed: true }\n' +
          '  if (epoch === 1) statics = await fenceOnce(options, hinted, epoch) as never',
      },
    ],
  },
  {
    name: 'hinted-segment-only',
    directed: 'late-hint',
    why: 'a claim fences the hinted segment, and an older owner goes on in a later one',
    patches: [
      {
        file: 'cluster/log/claim.ts',
        find: '  while (statics.sealed) {',
        replace: '  while (false) {',
      },
    ],
  },
  {
    name: 'replay-one-late',
    why: 'a new owner begins behind the first entry above the flush offset',
    first: 4,
    patches: [
      {
        file: 'cluster/sharding/recovery/recovery.ts',
        find: 'entriesBetween(source, known?.upTo ?? flush, claimed.head)',
        replace:
          'entriesBetween(source, Math.min((known?.upTo ?? flush) + 1, claimed.head), claimed.head)',
      },
    ],
  },
]
