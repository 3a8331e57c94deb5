// Joining: how a new incarnation takes the row of its member's name. A process joins when it
// starts, or starts again inside itself. Source: PROTOCOL 3.3.1.

import { LIMITS } from '../../config/limits.ts'
import type { Log } from '../../protocol/log.ts'
import { Outage } from '../../protocol/outage.ts'
import type { ControlStore, MemberRow, Outcome } from '../../storage/control.ts'
import type { Clock } from '../clock.ts'
import type { FormerIncarnations } from './former-incarnations.ts'
import { FailureDetector } from './failure-detector.ts'
import { isAlive } from './view.ts'

export interface JoiningOptions {
  readonly control: Pick<ControlStore, 'member' | 'insertMember' | 'updateMember'>
  readonly clock: Clock
  readonly log: Log
  /** The row to be written; its incarnation was never used before. */
  readonly row: MemberRow
  /** Absent: nothing is known of earlier processes. */
  readonly former?: FormerIncarnations
  readonly isOver: () => boolean
}

/**
 * Resolves to true once the row carries the new incarnation; to false when that one is over before
 * it began (its statement landed late and it was declared dead): join with another. Goes on while
 * the store is away; ends with false when `isOver` says so.
 */
export async function takeRow(options: JoiningOptions): Promise<boolean> {
  const { control, clock, log, row, former, isOver } = options
  const detector = new FailureDetector()
  let waitsFor: string | null = null
  former?.begins(row.incarnation)
  const now = (): number => clock.monotonicMs()
  const failing = "can't join yet: the member's row could not be read"
  const outage = new Outage({ log, now, failing, back: "the member's row can be read again" })
  for (;;) {
    const found = await control.member(row.member).catch((error: unknown) => {
      outage.failed({ err: error })
      return undefined
    })
    if (isOver()) return false
    if (found === undefined) {
      detector.restart()
      await pause(clock, LIMITS.membership.beatRetryMs)
      continue
    }
    outage.answered()
    if (found?.incarnation === row.incarnation) return found.state === 'up'
    if (found !== null && isAlive(found) && former?.isOver(found.incarnation) !== true) {
      // It may be merely paused and still answer reads when it goes on.
      detector.saw([found], clock.monotonicMs())
      if (!detector.isTimedOut(found.incarnation)) {
        if (waitsFor !== found.incarnation) {
          log.info({ member: row.member }, 'waiting for an earlier process of this name to be over')
        }
        waitsFor = found.incarnation
        await pause(clock, LIMITS.membership.membersReadEveryMs)
        if (isOver()) return false
        continue
      }
    }
    const outcome = await take(control, row, found)
    if (isOver()) return false
    if (outcome === 'applied') return true
    // The row says what became of it, or who was faster.
    if (outcome === 'unknown') await pause(clock, LIMITS.membership.beatRetryMs)
  }
}

function take(
  control: JoiningOptions['control'],
  row: MemberRow,
  found: MemberRow | null,
): Promise<Outcome> {
  if (found === null) return control.insertMember(row)
  const { member, ...to } = row
  const { incarnation, state, beat } = found
  const where = isAlive(found) ? { incarnation, beat } : { incarnation, state }
  return control.updateMember(member, to, where)
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve))
}
