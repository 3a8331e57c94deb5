// `npm run rebuild-index`: has the graph index made anew while reads and writes go on, and shows
// how far it is.

import { runCommand } from './rebuild-index/command.ts'
import { parseRebuildOptions, USAGE } from './rebuild-index/options.ts'

process.exitCode = await runCommand(parseRebuildOptions(process.argv.slice(2)), {
  usage: USAGE,
  asked: { path: '/resources/cluster/index' },
  told: {
    taken: 'The graph index is being made anew',
    done: 'The graph index is made anew',
    idle: 'The graph index is not being made anew',
  },
})
