// The keeper of the engines that several processes share, as a process of its own:
// users.mjs starts it with their folder, for servers that nobody else would end.

import { keep } from './users.mjs'

const [, , dir = ''] = process.argv
await keep(dir)
