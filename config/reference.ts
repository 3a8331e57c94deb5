// The printed reference of the settings, `node node/main.ts --help`.

import { OPTIONS } from './arguments.ts'
import type { SettingRow } from './setting-row.ts'
import { SETTING_NAMES, TABLE } from './table.ts'

/** The reference as lines of at most 100 characters, with the line end after each. */
export function settingsReference(): string {
  const lines = [
    'node node/main.ts [options]',
    '',
    'Options:',
    ...Object.entries(OPTIONS).flatMap(([option, { value, what }]) => [
      `  ${option}${value === null ? '' : ` ${value}`}`,
      ...wrapped(what),
    ]),
    '',
    'Settings: a variable of the environment, or its key in the settings file. The environment',
    'counts before the file. Paths are relative to the folder in which the node is started. What is',
    'secret may be in a file of its own, which is named by the setting with _FILE behind its name',
    '(in the settings file: File behind its key).',
    ...SETTING_NAMES.flatMap((name) => ['', `  ${name}  (${TABLE[name].key})`, ...lookUp(name)]),
  ]
  return `${lines.join('\n')}\n`
}

function lookUp(name: keyof typeof TABLE): string[] {
  const row: SettingRow<unknown> = TABLE[name]
  return [
    ...wrapped(row.what),
    ...wrapped(`Value: ${row.kind.rule}.`),
    ...wrapped(`Default: ${row.initially ?? defaultOf(row.initial)}.`),
  ]
}

function defaultOf(initial: unknown): string {
  const isUnset = initial === null || (Array.isArray(initial) && initial.length === 0)
  if (isUnset) return 'not set'
  return typeof initial === 'string' ? initial : JSON.stringify(initial)
}

const INDENT = '      '
const WIDTH_MAX = 100

function wrapped(text: string): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && INDENT.length + line.length + 1 + word.length > WIDTH_MAX) {
      lines.push(INDENT + line)
      line = word
    } else line = line === '' ? word : `${line} ${word}`
  }
  return [...lines, INDENT + line]
}
