// The command line of a node.

import { suggestion } from '../protocol/near-names.ts'
import { SETTING_NAMES, TABLE, type SettingName } from './table.ts'

export interface Arguments {
  readonly configFile: string | null
  /** What holds for a setting that neither the file nor the environment gives. */
  readonly defaults: readonly { readonly name: SettingName; readonly text: string }[]
  readonly acceptLoss: readonly { readonly shard: number; readonly offset: number }[]
}

/** The options and what they do, for the printed reference; each but the last takes a value. */
export const OPTIONS = {
  '--config': { value: 'FILE', what: 'Read settings from this JSON file.' },
  '--default': {
    value: 'NAME=VALUE',
    what: 'What a setting is when neither the file nor the environment gives it. Repeatable.',
  },
  '--accept-loss': {
    value: 'SHARD:OFFSET',
    what: 'Go on with a shard whose log is damaged above this offset. Repeatable.',
  },
  '--help': { value: null, what: 'Print this reference.' },
} as const

type Option = keyof typeof OPTIONS

interface Collected {
  configFile: string | null
  readonly defaults: { name: SettingName; text: string }[]
  readonly acceptLoss: { shard: number; offset: number }[]
}

/** The arguments, `--option value` or `--option=value`; mistakes are added to `problems`. */
export function readArguments(argv: readonly string[], problems: string[]): Arguments {
  const collected: Collected = { configFile: null, defaults: [], acceptLoss: [] }
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!
    const equals = word.indexOf('=')
    const option = equals === -1 ? word : word.slice(0, equals)
    if (!isOption(option)) {
      const near = suggestion(option, Object.keys(OPTIONS))
      problems.push(`${word}: there is no such option${near}`)
      continue
    }
    const form = OPTIONS[option].value
    if (form === null) continue
    const value = equals === -1 ? argv[++i] : word.slice(equals + 1)
    if (value === undefined || value === '') problems.push(`${option}: must be followed by ${form}`)
    else take(option, value, { collected, problems })
  }
  return collected
}

function isOption(text: string): text is Option {
  return Object.hasOwn(OPTIONS, text)
}

function take(
  option: Option,
  value: string,
  { collected, problems }: { readonly collected: Collected; readonly problems: string[] },
): void {
  if (option === '--config') {
    if (collected.configFile !== null) problems.push('--config: given twice; there is one file')
    collected.configFile = value
  } else if (option === '--default') {
    const [name = '', ...rest] = value.split('=')
    if (Object.hasOwn(TABLE, name) && rest.length > 0) {
      collected.defaults.push({ name: name as SettingName, text: rest.join('=') })
    } else {
      const near = Object.hasOwn(TABLE, name) ? '' : suggestion(name, SETTING_NAMES)
      problems.push(`--default ${value}: must be NAME=VALUE with the name of a setting${near}`)
    }
  } else {
    const [, shard, offset] = /^(\d{1,4}):(\d{1,15})$/.exec(value) ?? []
    if (shard === undefined || offset === undefined) {
      problems.push(`--accept-loss ${value}: must be SHARD:OFFSET, such as 3:1200`)
    } else collected.acceptLoss.push({ shard: Number(shard), offset: Number(offset) })
  }
}
