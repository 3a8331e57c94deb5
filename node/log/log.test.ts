// The log in both its forms: sentences at a terminal, JSON lines elsewhere, or what the setting
// says. Source: CONTRACT 0 "Log".

import t from 'tap'
import { createVoice } from './log.ts'
import type { Voice } from './log.ts'
import { textLog } from './log-text.ts'

type Settings = Parameters<typeof createVoice>[0]

/** A voice, and the lines that it has written. */
function voice(given: Partial<Settings>, isTerminal: boolean): Voice & { lines: () => string[] } {
  let text = ''
  const to = { write: (lines: string) => void (text += lines) }
  const settings: Settings = { logLevel: 'info', logFormat: 'auto', memberId: 'm', ...given }
  const lines = (): string[] => text.split('\n').slice(0, -1)
  return { ...createVoice(settings, { to, isTerminal }), lines }
}

t.test('sentences at a terminal, JSON elsewhere, unless a setting says which', async (t) => {
  const cases = [
    ['auto', true, true],
    ['auto', false, false],
    ['text', false, true],
    ['json', true, false],
  ] as const
  for (const [logFormat, isTerminal, isText] of cases) {
    const { log, lines, ...made } = voice({ logFormat }, isTerminal)
    t.equal(made.isText, isText, `${logFormat} ${isTerminal}`)
    log.info({ shard: 3 }, 'serves a shard')
    const [line = ''] = lines()
    if (isText) t.match(line, /^\d\d:\d\d:\d\d {2}Serves a shard \(shard 3\)\.$/)
    else t.match(JSON.parse(line), { level: 'info', member: 'm', shard: 3, msg: 'serves a shard' })
  }
})

t.test('what the operator is told is told at any level, in the same form', async (t) => {
  const person = voice({ logLevel: 'error' }, true)
  person.tell('Kontor is up.', { url: 'http://h:1' })
  t.strictSame(person.lines(), ['Kontor is up.'])
  const collector = voice({ logLevel: 'error' }, false)
  collector.tell('Kontor is up.', { url: 'http://h:1' })
  collector.log.info({}, 'too low')
  t.equal(collector.lines().length, 1)
  t.match(JSON.parse(collector.lines()[0]!), { url: 'http://h:1', msg: 'Kontor is up.' })
})

/** The text of one line without its time. */
function told(level: 'debug' | 'info' | 'warn' | 'error', fields: object, text: string): string {
  let written = ''
  const to = { write: (lines: string) => void (written += lines) }
  textLog({ level: 'debug', to, nowMs: () => 0 })[level](fields, text)
  return written.slice(10, -1)
}

t.test('a level is a word, and none for the usual one', async (t) => {
  t.equal(told('info', {}, 'stopping'), 'Stopping.')
  t.equal(told('info', {}, 'Ends as it began.'), 'Ends as it began.')
  t.equal(told('debug', {}, 'stopping'), 'Debug: stopping.')
  t.equal(
    told('warn', { why: 'a word' }, 'a shard was lost'),
    'Warning: a shard was lost (why "a word").',
  )
  const silent = voice({ logLevel: 'silent' }, true)
  silent.log.error({}, 'anything')
  t.strictSame(silent.lines(), [])
})

t.test('errors say why; a mistake of the program says where, too', async (t) => {
  const error = new Error('no', { cause: new Error('connect ECONNREFUSED //u:p@h') })
  t.equal(
    told('warn', { err: error, shard: 1 }, 'away'),
    'Warning: away: no; connect ECONNREFUSED //***@h (shard 1).',
  )
  const lines = new Error('all hosts failed: no\n  at Socket (net.js)', { cause: new Error('no') })
  t.equal(told('warn', { err: lines }, 'away'), 'Warning: away: all hosts failed: no.')
  const [line, ...places] = told('error', { err: error }, 'failed').split('\n')
  t.equal(line, 'Error: failed: no; connect ECONNREFUSED //***@h.')
  t.match(places[0], /^ +at .*log\.test\.ts/)
})

t.test('nothing that a caller sent moves the cursor or looks like a line of the log', async (t) => {
  const evil = 'a\u001b[2J\r\n12:00:00  Error: all is lost\u202e\u2028'
  for (const line of [
    told('info', { path: evil }, 'asked'),
    told('info', {}, evil),
    told('error', { err: new Error(evil.replaceAll(/[\r\n]/g, '')) }, 'x').split(
      '\n          at ',
    )[0]!,
  ]) {
    t.notMatch(line, /[\p{Cc}\p{Cf}\p{Zl}]/u)
    t.match(line, 'all is lost')
  }
})
