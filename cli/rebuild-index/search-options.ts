// The arguments of `npm run update-search`: a node, and those that it shares.

import { CREDENTIALS_USAGE, parseOptions, type Parsed } from './options.ts'

export const SEARCH_USAGE = `usage: npm run update-search -- NODE [options]

Has what phrases find of a node type (order, orderLine, ...) updated in a running node, or in its
cluster: what is configured in the registry at system/graph/<node>/search applies by itself, this
waits until it does. Search and all else go on meanwhile. Run with --status it shows how far it is.

  --rebuild              make the index anew from the journal, whatever it has
${CREDENTIALS_USAGE}
                         its role needs graph/<node>:update-search
  --status               start nothing: show how far the one under way is
  --no-wait              start it, and return
  --retry-seconds N      give up after so long without an answer, default 120

Exit code 0: done (with --no-wait: taken), 1: it failed, 2: wrong arguments.
`

export interface SearchArguments {
  readonly options: Parsed
  readonly node: string
  readonly rebuild: boolean
}

export function parseSearchOptions(args: readonly string[]): SearchArguments {
  const rebuild = args.includes('--rebuild')
  const own = args.filter((arg) => arg !== '--rebuild')
  const { options, positionals } = parseOptions(own)
  const [node = ''] = positionals
  const said = { node, rebuild }
  if (options === 'help') return { options, ...said }
  const problems = 'problems' in options ? [...options.problems] : []
  if (positionals.length !== 1)
    problems.push('name one node type, as in npm run update-search -- order')
  if (rebuild && args.includes('--status'))
    problems.push('--status starts nothing: leave out --rebuild')
  return { options: problems.length > 0 ? { problems } : options, ...said }
}
