// What tests of the embedded journal open it with: a folder of their own, quiet and quick.

import { randomFillSync } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { EmbeddedJournalOptions } from '../journal/journal.ts'

const nothing = () => {}
export const QUIET = { info: nothing, warn: nothing, error: nothing }

export function journalOptions(t: Test): EmbeddedJournalOptions {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-journal-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return optionsIn(dir)
}

export function optionsIn(dir: string): EmbeddedJournalOptions {
  return {
    dir,
    shards: null,
    log: QUIET,
    random: randomFillSync,
    clock: () => 1_700_000_000_000,
    onFatal: (error) => {
      throw error
    },
    roomBytes: 1024 * 1024,
    segmentBytes: [256 * 1024, 1024 * 1024],
  }
}
