// The log of a process: JSON lines on standard output. It stands between the parts, which know
// protocol/log.ts, and pino; main.ts makes it from the settings.

import { pino } from 'pino'
import type { DestinationStream } from 'pino'
import type { Settings } from '../config/settings.ts'
import type { Log } from '../protocol/log.ts'
import { errorFields } from './log-error.ts'

/** A log whose lines carry the member's name; errors are told with their stack. */
export function createLog(
  settings: Pick<Settings, 'logLevel' | 'memberId'>,
  destination?: DestinationStream,
): Log {
  const options = {
    level: settings.logLevel,
    base: { member: settings.memberId },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: errorFields },
  }
  return destination === undefined ? pino(options) : pino(options, destination)
}
