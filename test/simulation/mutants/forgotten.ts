// Mutants of actors that are forgotten: what of one goes first, what counts while it goes, and what
// is believed of what is left. Weeks pass in each, so unit tests catch them. Source: PROTOCOL 3.12
// "Forgotten actors".

import type { Mutant } from './mutant.ts'

const ENTRIES = 'storage/lmdb/forgotten-entries.ts'
const STATEMENTS = 'storage/cassandra/derived/statements.ts'
const ACTIVATION = 'cluster/sharding/turn/activation.ts'
const IN_LOG = 'storage/embedded/log/forgotten.test.ts'
const ON_SERVER = 'storage/cassandra/derived/forgotten.test.ts'
const SESSIONS = 'node/access/sessions/forgotten.test.ts'

export const FORGOTTEN_MUTANTS: readonly Mutant[] = [
  {
    name: 'end-leaves-the-log-first',
    test: IN_LOG,
    why: 'a file with the end of a session is given back before one with its beginning',
    patches: [{ file: ENTRIES, find: ' || this.#isLast(entry.p, at.offset)', replace: ' || true' }],
  },
  {
    name: 'forgotten-before-told',
    test: IN_LOG,
    why: 'an end leaves the log while nobody has taken what it tells others',
    patches: [
      {
        file: ENTRIES,
        find: 'ended.offset > this.#relayedOf(at.shard)',
        replace: 'ended.offset < 0',
      },
    ],
  },
  {
    name: 'forgotten-at-once',
    test: IN_LOG,
    why: 'what has ended leaves the log before its time',
    patches: [{ file: ENTRIES, find: '!isOver(ended.from, clock)', replace: 'clock < 0' }],
  },
  {
    name: 'new-life-is-forgotten',
    test: IN_LOG,
    why: 'what came behind an end counts as before it',
    patches: [
      {
        file: ENTRIES,
        find: ' || at.offset > ended.offset) return false',
        replace: ') return false',
      },
    ],
  },
  {
    name: 'snapshot-outlives-its-actor',
    test: IN_LOG,
    why: 'all entries of a session are gone, and its snapshot says that it lives',
    patches: [
      {
        file: 'storage/lmdb/place-turner.ts',
        find: 'hasOlder ? [{ table: env.snapshots, key }] : []',
        replace: '[]',
      },
    ],
  },
  {
    name: 'end-expires-alone',
    test: 'storage/memory/journal.test.ts',
    why: 'the end of an actor goes by its time, and what was before it stays',
    patches: [
      {
        file: 'storage/memory/registers.ts',
        find: 'if (n <= end) entries.delete(n)',
        replace: 'if (n === end) entries.delete(n)',
      },
    ],
  },
  {
    name: 'end-takes-nothing',
    test: ON_SERVER,
    why: 'on a server the end of an actor expires, and what was before it stays',
    patches: [
      {
        file: STATEMENTS,
        find: 'isPassingEnd && !keepsRejections ?',
        replace: 'isPassingEnd && keepsRejections ?',
      },
    ],
  },
  {
    name: 'end-takes-itself',
    test: ON_SERVER,
    why: 'on a server an end goes with what was before it: the log may not be read again',
    patches: [
      { file: STATEMENTS, find: 'const stamp = offset - 1\n', replace: 'const stamp = offset\n' },
    ],
  },
  {
    name: 'early-end-goes-early',
    test: SESSIONS,
    why: 'a token of a year that was revoked is forgotten while it would still be good',
    patches: [
      {
        file: 'cluster/sharding/turn/entry-maker.ts',
        find: 'entry.f = Math.max(forgottenFrom, entry.c + leftMs)',
        replace: 'entry.f = Math.max(forgottenFrom, entry.c + 0 * leftMs)',
      },
    ],
  },
  {
    name: 'hole-before-an-end',
    test: IN_LOG,
    why: 'verify-log misses what was before an end',
    patches: [
      {
        file: 'protocol/entry/succession.ts',
        find: "  if (isEnd(entry)) return 'next'\n",
        replace: '',
      },
    ],
  },
  {
    name: 'ended-in-quarantine',
    test: SESSIONS,
    why: 'a session that is gone in part is in quarantine, and an alarm',
    patches: [
      {
        file: ACTIVATION,
        find: '    if (isEnd(entry)) this.quarantined = null\n',
        replace: '',
      },
    ],
  },
  {
    name: 'hole-is-read-over',
    test: SESSIONS,
    why: 'of a session that lacks entries what is left is taken for it',
    patches: [
      {
        file: ACTIVATION,
        find: '    if (this.behaviour.countsUntilMs !== undefined) this.state = null\n',
        replace: '',
      },
    ],
  },
  {
    name: 'repeats-of-the-ended-unknown',
    test: SESSIONS,
    why: 'entries go with the end, and with them the answers that somebody may still ask for',
    patches: [
      {
        file: ACTIVATION,
        find: '    if (this.forgottenFrom > 0) return this.#isAskedFor() ? this.#capture() : null\n',
        replace: '    if (this.forgottenFrom > 0) return null\n',
      },
    ],
  },
]
