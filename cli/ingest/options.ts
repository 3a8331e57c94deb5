// The ingest command's arguments. Two settings of the environment name a node's secret. All
// mistakes are told at once.

import { parseArgs } from 'node:util'
import { basename } from 'node:path'
import { type Credentials, readUrl } from '../session.ts'

export interface IngestOptions {
  readonly file: string
  readonly encoding: 'utf-8' | 'windows-1252'
  /** Base address of the node, without a slash at the end. */
  readonly url: string
  readonly connections: number
  readonly rejectsFile: string
  readonly dryRun: boolean
  /** Wait until every order is in the graph, and compare its total. */
  readonly wait: boolean
  readonly json: boolean
  /** Give up after so long without any answer. */
  readonly retryMs: number
  /** null: as the environment or bootstrap.json say, when a token is needed. */
  readonly credentials: Credentials | null
}

export const USAGE = `usage: npm run ingest -- --file FILE.csv[.gz] [options]

Posts the invoices of an Online Retail file as orders to a running node. It can be stopped and run
again: nothing is created twice.

  --file FILE            the file; .gz is unpacked on the way
  --encoding NAME        utf-8 (default) or windows-1252
  --url URL              default http://127.0.0.1:8080
  --connections N        1 to 4, default 2
  --client-id ID         with --client-secret; else KONTOR_BOOTSTRAP_SECRET,
  --client-secret TEXT   else <KONTOR_DATA_DIR or ./data>/bootstrap.json
  --rejects FILE         rows that are no order, and failed ones, with the reason of each
                         (default: FILE.rejects.csv in the current folder)
  --retry-seconds N      give up after so long without an answer, default 120
  --wait                 wait until all is in the graph, compare every order's total
  --dry-run              read and count only, post nothing
  --total                (always shown) the exact sum of all orders
  --json                 the summary as JSON
`

const OPTIONS = {
  file: { type: 'string' },
  encoding: { type: 'string', default: 'utf-8' },
  url: { type: 'string', default: 'http://127.0.0.1:8080' },
  connections: { type: 'string', default: '2' },
  'client-id': { type: 'string' },
  'client-secret': { type: 'string' },
  rejects: { type: 'string' },
  'retry-seconds': { type: 'string', default: '120' },
  wait: { type: 'boolean', default: false },
  'dry-run': { type: 'boolean', default: false },
  total: { type: 'boolean', default: false },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const

export type ParsedOptions =
  | { readonly options: IngestOptions }
  | { readonly problems: readonly string[] }
  | 'help'

export function parseIngestOptions(args: readonly string[]): ParsedOptions {
  let values
  try {
    values = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: false }).values
  } catch (error) {
    return { problems: [(error as Error).message] }
  }
  if (values.help) return 'help'
  const problems: string[] = []
  const check = (right: boolean, what: string): void => void (right || problems.push(what))
  const url = readUrl(values.url)
  const connections = Number(values.connections)
  const retrySeconds = Number(values['retry-seconds'])
  const { encoding, file } = values
  const id = values['client-id']
  const secret = values['client-secret']
  check(file !== undefined && file !== '', '--file FILE is missing')
  check(encoding === 'utf-8' || encoding === 'windows-1252', ENCODING_PROBLEM)
  check(url !== null, `--url ${values.url}: must be like http://127.0.0.1:8080`)
  check([1, 2, 3, 4].includes(connections), `--connections ${values.connections}: must be 1 to 4`)
  check(retrySeconds >= 1, `--retry-seconds ${values['retry-seconds']}: must be 1 or more`)
  check((id === undefined) === (secret === undefined), 'give --client-id and --client-secret both')
  if (problems.length > 0) return { problems }
  return {
    options: {
      file: file!,
      encoding: encoding as IngestOptions['encoding'],
      url: url!,
      connections,
      rejectsFile:
        values.rejects ?? `${basename(file!).replace(/(\.csv)?(\.gz)?$/, '')}.rejects.csv`,
      dryRun: values['dry-run'],
      wait: values.wait,
      json: values.json,
      retryMs: retrySeconds * 1000,
      credentials: id === undefined ? null : { clientId: id, clientSecret: secret! },
    },
  }
}

const ENCODING_PROBLEM = '--encoding: must be utf-8 or windows-1252'
