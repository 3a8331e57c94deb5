// Starts the node in this process: packed, when these very sources have been, else from them. npm
// start, npm run cluster, containers and tests start a node by it.

import { packedMain } from '../tools/start/packed.mjs'

await import(packedMain() ?? '../node/main.ts')
