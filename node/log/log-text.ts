// The log for a person at a terminal: a sentence a line. log.ts makes JSON lines, for
// everybody else.

import type { Settings } from '../../config/settings.ts'
import type { Log } from '../../protocol/log.ts'
import { errorFields } from './log-error.ts'
import type { ErrorFields } from './log-error.ts'
import type { LineWriter } from './log-lines.ts'

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'silent'] as const
const BEGINNINGS = { debug: 'Debug: ', info: '', warn: 'Warning: ', error: 'Error: ' } as const
type Level = keyof typeof BEGINNINGS

export interface TextLogOptions {
  readonly level: Settings['logLevel']
  readonly to: LineWriter
  /** Milliseconds since 1970; lines show the time of day where the terminal is. */
  readonly nowMs: () => number
}

export function textLog({ level: least, to, nowMs }: TextLogOptions): Log {
  const tell =
    (level: Level) =>
    (fields: object, text: string): void => {
      const time = new Date(nowMs()).toTimeString().slice(0, 8)
      to.write(`${time}  ${sentence(level, fields, text)}\n`)
    }
  const quiet = (): void => undefined
  const at = (level: Level) =>
    LEVELS.indexOf(level) >= LEVELS.indexOf(least) ? tell(level) : quiet
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** `Warning: the control rows can not be read: connect ECONNREFUSED (shard 3).` */
function sentence(level: Level, fields: object, text: string): string {
  const { err, ...others } = fields as { readonly err?: unknown }
  const beginning = BEGINNINGS[level]
  const first = beginning === '' ? text.slice(0, 1).toUpperCase() + text.slice(1) : text
  const error = err === undefined ? null : errorFields(err)
  const why = error === null ? '' : `: ${reasons(error)}`
  const more = Object.entries(others).map(([name, value]) => `${name} ${shown(value)}`)
  const end = more.length > 0 ? ` (${more.join(', ')}).` : '.'
  const line = oneLine(`${beginning}${first}${why}`).replace(/\.$/, '') + oneLine(end)
  // Where in the program it was helps only with what should never happen.
  return level === 'error' && error !== null ? line + places(error) : line
}

/** What an error says, and its causes where they say more; of each the first line. */
function reasons(error: ErrorFields): string {
  return reasonsOf(error).reduce((said, one) => (said.includes(one) ? said : `${said}; ${one}`))
}

function reasonsOf({ message, type, errors = [], cause }: ErrorFields): string[] {
  const [first = ''] = message.split(/[\r\n]/, 1)
  const inner = [...errors, ...(cause === undefined ? [] : [cause])]
  return [first === '' ? type : first, ...inner.flatMap(reasonsOf)]
}

/** The lines of the stack without its head, which repeats the message. */
function places({ stack = '' }: ErrorFields): string {
  const lines = stack.split('\n').filter((line) => /^\s+at /.test(line))
  return lines.map((line) => `\n          ${oneLine(line.trim())}`).join('')
}

function shown(value: unknown): string {
  if (typeof value === 'string' && /^[\w.:/@+-]+$/.test(value)) return value
  return JSON.stringify(value) ?? String(value)
}

/** What callers sent must not move the cursor, or look like another line. */
function oneLine(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u${character.codePointAt(0)!.toString(16).padStart(4, '0')}`,
  )
}
