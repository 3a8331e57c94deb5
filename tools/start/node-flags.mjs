// The options of Node itself that a node is started with, whoever starts it: npm start, npm run
// cluster, the bench. What each is worth: bench/README.

import { availableParallelism } from 'node:os'

/** Up to so many processors, V8's helper threads take from the threads that they help. */
const FEW_PROCESSORS = 2

/** @returns {string[]} */
export function nodeFlags() {
  // The program's own code lies in large pages where the system has them.
  const flags = ['--disable-warning=ExperimentalWarning', '--use-largepages=silent']
  if (availableParallelism() <= FEW_PROCESSORS) flags.push('--v8-pool-size=1')
  return flags
}
