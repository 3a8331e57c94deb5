// Starts the node in this process: packed, when these very sources have been, else from them. It
// stands between whoever starts a node (npm start, npm run cluster, containers, tests) and
// node/main.ts.

import { packedMain } from '../tools/start/packed.mjs'

await import(packedMain() ?? '../node/main.ts')
