// The keeper of the engines that several processes share, as a process of its own. It stands
// between users.mjs, which starts it with their folder, and servers that nobody else would end.

import { keep } from './users.mjs'

const [, , dir = ''] = process.argv
await keep(dir)
