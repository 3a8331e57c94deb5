// A log that a test can read: for the tests of this folder.

import type { Log } from '../../../protocol/log.ts'

export interface Told {
  readonly level: string
  readonly fields: object
  readonly text: string
}

/** A log that keeps what it is told. */
export function recorder(): Log & { readonly told: Told[] } {
  const told: Told[] = []
  const keep = (level: string) => (fields: object, text: string) =>
    void told.push({ level, fields, text })
  return {
    told,
    debug: keep('debug'),
    info: keep('info'),
    warn: keep('warn'),
    error: keep('error'),
  }
}
