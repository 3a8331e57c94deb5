// The log of a process, on standard output: sentences at a terminal, JSON lines elsewhere. The
// parts know protocol/log.ts only; main.ts makes it from the settings.

import { pino } from 'pino'
import type { Settings } from '../../config/settings.ts'
import type { Log } from '../../protocol/log.ts'
import { errorFields } from './log-error.ts'
import type { LineWriter } from './log-lines.ts'
import { textLog } from './log-text.ts'

/** Where lines go. */
export interface LogPlace {
  readonly to: LineWriter
  readonly isTerminal: boolean
}

/** What a process says: its log, and what is told to whoever started it. */
export interface Voice {
  readonly log: Log
  /** Whether it is a person who reads. */
  readonly isText: boolean
  /** Tells the operator, whatever the least level of the log is. */
  readonly tell: (text: string, fields?: object) => void
}

type VoiceSettings = Pick<Settings, 'logLevel' | 'logFormat' | 'memberId'>

export function createVoice(settings: VoiceSettings, place: LogPlace): Voice {
  const { logFormat } = settings
  const isText = logFormat === 'text' || (logFormat === 'auto' && place.isTerminal)
  if (isText) {
    const log = textLog({ level: settings.logLevel, to: place.to, nowMs: Date.now })
    return { log, isText, tell: (text) => place.to.write(`${text}\n`) }
  }
  const always = jsonLog({ ...settings, logLevel: 'info' }, place.to)
  return {
    log: jsonLog(settings, place.to),
    isText,
    tell: (text, fields = {}) => always.info(fields, text),
  }
}

/** A log whose lines carry the member's name; errors are told with their stack. */
export function jsonLog(settings: Pick<Settings, 'logLevel' | 'memberId'>, to: LineWriter): Log {
  const options = {
    level: settings.logLevel,
    base: { member: settings.memberId },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: errorFields },
  }
  return pino(options, to)
}
