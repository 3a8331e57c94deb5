// The arguments of `npm run rebuild-index`, which `npm run update-search` shares. All mistakes are
// told at once.

import { parseArgs } from 'node:util'
import { type Credentials, readUrl } from '../session.ts'

export interface RebuildOptions {
  /** Base address of the node, without a slash at the end. */
  readonly url: string
  /** Ask for it; false: only tell how far it is. */
  readonly starts: boolean
  /** Until it is done. */
  readonly waits: boolean
  /** Give up after so long without an answer. */
  readonly retryMs: number
  /** null: as the environment or bootstrap.json say. */
  readonly credentials: Credentials | null
}

export const CREDENTIALS_USAGE = `  --url URL              default http://127.0.0.1:8080
  --client-id ID         with --client-secret; else KONTOR_BOOTSTRAP_SECRET,
  --client-secret TEXT   else <KONTOR_DATA_DIR or ./data>/bootstrap.json;`

export const USAGE = `usage: npm run rebuild-index [-- options]

Has the graph index of a running node, or of its cluster, made anew from the journal, beside the one
that is read: reads and writes go on. Shows how far it is until it is done. It goes on by itself
when this command is stopped, and when a node is: run with --status it shows the rest.

${CREDENTIALS_USAGE}
                         its role needs cluster:write and cluster:read
  --status               start nothing: show how far the one under way is
  --no-wait              start it, and return
  --retry-seconds N      give up after so long without an answer, default 120

Exit code 0: done (with --no-wait: taken), 1: it failed, 2: wrong arguments.
`

const OPTIONS = {
  url: { type: 'string', default: 'http://127.0.0.1:8080' },
  'client-id': { type: 'string' },
  'client-secret': { type: 'string' },
  status: { type: 'boolean', default: false },
  'no-wait': { type: 'boolean', default: false },
  'retry-seconds': { type: 'string', default: '120' },
  help: { type: 'boolean', default: false },
} as const

/** Options, `help`, or all that is wrong. */
export type Parsed = RebuildOptions | { readonly problems: readonly string[] } | 'help'

export function parseRebuildOptions(args: readonly string[]): Parsed {
  const { options, positionals } = parseOptions(args)
  if (options === 'help' || 'problems' in options || positionals.length === 0) return options
  return { problems: [`${positionals.join(' ')}: it takes options only`] }
}

/** The options that both commands have, and what isn't an option. */
export function parseOptions(args: readonly string[]): {
  readonly options: Parsed
  readonly positionals: readonly string[]
} {
  try {
    const parsed = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true })
    return { options: checked(parsed.values), positionals: parsed.positionals }
  } catch (error) {
    return { options: { problems: [(error as Error).message] }, positionals: [] }
  }
}

interface Values {
  readonly url: string
  readonly 'client-id'?: string | undefined
  readonly 'client-secret'?: string | undefined
  readonly status: boolean
  readonly 'no-wait': boolean
  readonly 'retry-seconds': string
  readonly help: boolean
}

function checked(values: Values): Parsed {
  if (values.help) return 'help'
  const problems: string[] = []
  const check = (right: boolean, what: string): void => void (right || problems.push(what))
  const url = readUrl(values.url)
  const { 'client-id': clientId, 'client-secret': clientSecret, status } = values
  const seconds = Number(values['retry-seconds'])
  check(url !== null, `--url ${values.url}: must be like http://127.0.0.1:8080`)
  check(seconds >= 1, `--retry-seconds ${values['retry-seconds']}: must be 1 or more`)
  check(
    (clientId === undefined) === (clientSecret === undefined),
    'give --client-id and --client-secret both',
  )
  check(!status || !values['no-wait'], '--status starts nothing: leave out --no-wait')
  if (problems.length > 0) return { problems }
  return {
    url: url!,
    starts: !status,
    waits: !values['no-wait'],
    retryMs: seconds * 1000,
    credentials: clientId === undefined ? null : { clientId, clientSecret: clientSecret! },
  }
}
