// What a request may bring before anything is done for it: one row for each operation, made of the
// table of operations. Source: CONTRACT 0 "Bodies".

import type { Door, HttpLimits } from './core.ts'
import type { Operation } from './operation.ts'

/**
 * The row of an operation. Who needs no token brings little, in little time and unpacked: forms are
 * short, and a kilobyte of gzip is a megabyte of work.
 */
export function doorOf(operation: Operation, limits: HttpLimits): Door {
  if (operation.access === 'token') {
    return { bytesMax: limits.bodyBytesMax, packed: true, bodyMs: limits.bodyMs }
  }
  return {
    bytesMax: Math.min(limits.bodyBytesMax, limits.strangerBodyBytesMax),
    packed: false,
    bodyMs: Math.min(limits.bodyMs, limits.strangerBodyMs),
  }
}
