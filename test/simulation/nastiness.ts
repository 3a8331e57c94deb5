// How bad a simulated world is: the chances of everything that a store or a wire may do to what it
// is given. A seed draws one of these. Source: PROTOCOL 4.1, F8-F15.

import type { Scheduler } from './scheduler/scheduler.ts'

/** All 0..1, drawn anew for each statement, row or parcel. */
export interface Nastiness {
  /** A statement that never reaches the engine; its sender hears nothing. */
  readonly lost: number
  /** One that is applied, and nobody hears of it. */
  readonly unheard: number
  /** One that is applied long after its sender has given it up. */
  readonly late: number
  /** One that is evaluated twice, at two times; either answer may be the one that is heard. */
  readonly twice: number
  /** One that takes its time, or a read. */
  readonly slow: number
  /** A read that fails. */
  readonly unread: number
  /** A parcel, answer or notice that is lost. */
  readonly dropped: number
  /** A parcel, answer or notice that takes its time. */
  readonly delayed: number
  /** A notice that comes twice. */
  readonly doubled: number
  /** A write to the index that is refused with 429, or heard of too late. */
  readonly indexBusy: number
}

export const KIND: Nastiness = {
  lost: 0,
  unheard: 0,
  late: 0,
  twice: 0,
  slow: 0,
  unread: 0,
  dropped: 0,
  delayed: 0,
  doubled: 0,
  indexBusy: 0,
}

/** A share of the seeds has a kind world, in which faults alone do their work. */
export function drawNastiness({ chance }: Scheduler): Nastiness {
  const level = chance() < 0.2 ? 0 : chance() ** 2
  const upTo = (most: number): number => chance() * most * level
  // Now and then a store that hardly ever says what it has done.
  const deaf = chance() < 0.1 ? 5 : 1
  return {
    lost: upTo(0.05) * deaf,
    unheard: upTo(0.08) * deaf,
    late: upTo(0.05) * deaf,
    twice: upTo(0.1),
    slow: upTo(0.1),
    unread: upTo(0.05),
    dropped: upTo(0.15),
    delayed: upTo(0.3),
    doubled: upTo(0.3),
    indexBusy: upTo(0.3),
  }
}
