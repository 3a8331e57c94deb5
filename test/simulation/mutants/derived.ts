// Mutants of what is derived from the log: the order in which rows are written, and what is read
// ahead of a turn. Source: PROTOCOL 3.6 "Reads ahead of a turn", 3.12.

import type { Mutant } from './mutant.ts'

const FLUSHER = 'cluster/sharding/commit/flusher.ts'

export const DERIVED_MUTANTS: readonly Mutant[] = [
  {
    name: 'flush-without-counters',
    why: 'the flush offset moves on without the row that holds what the shard itself remembers',
    patches: [
      {
        file: FLUSHER,
        find: "    if (!(await this.#written([{ kind: 'shard', offset, body }]))) return false\n",
        replace: '    void body\n',
      },
    ],
  },
  {
    name: 'counters-unwritten',
    why: 'the flush offset moves on without the rows of counters: numbers are handed out again',
    patches: [
      {
        file: FLUSHER,
        find: "        batch.rows.push({ kind: 'alias', offset: batch.upTo, row: numbers.rowOf(counter) })\n",
        replace: '        numbers.rowOf(counter)\n',
      },
    ],
  },
  {
    name: 'snapshot-before-marks',
    directed: 'snapshot-overtakes',
    why: 'an owner dies between a snapshot and the marks that have left its window: they are lost',
    patches: [
      {
        file: FLUSHER,
        find:
          '      if (!(await this.#written(batch.rows))) return\n' +
          "      // An actor's snapshot comes after its entries and marks (PROTOCOL 3.12).\n" +
          '      if (batch.snapshots.length > 0 && !(await this.#tried(batch.snapshots))) return',
        replace:
          '      if (batch.snapshots.length > 0 && !(await this.#tried(batch.snapshots))) return\n' +
          '      if (!(await this.#written(batch.rows))) return',
      },
    ],
  },
  {
    name: 'prefetch-forgets-flushed',
    directed: 'forgotten-key',
    why: 'a key that was read before its row was written, and is forgotten since, looks free',
    patches: [
      {
        file: 'cluster/sharding/keys/keys.ts',
        find: '      if (this.#reads.size === 0) this.#unflushed.delete(id)',
        replace: '      if (this.#reads.size >= 0) this.#unflushed.delete(id)',
      },
    ],
  },
]
