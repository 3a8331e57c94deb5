// `npm run update-search`: has what phrases find of a node updated while reads and writes go on,
// and shows how far it is.

import { runCommand } from './rebuild-index/command.ts'
import { parseSearchOptions, SEARCH_USAGE } from './rebuild-index/search-options.ts'

const { options, node, rebuild } = parseSearchOptions(process.argv.slice(2))

process.exitCode = await runCommand(options, {
  usage: SEARCH_USAGE,
  asked: { path: `/resources/graph/search/${encodeURIComponent(node)}`, body: { rebuild } },
  told: {
    taken: `Search of ${node} is being updated`,
    done: `Search of ${node} is up to date`,
    idle: `Search of ${node} is not being updated`,
  },
})
