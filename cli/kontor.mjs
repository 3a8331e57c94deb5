#!/usr/bin/env node
// `npx kontor`, on any Node.

import { fileURLToPath } from 'node:url'

const program = fileURLToPath(new URL('kontor.ts', import.meta.url))
process.argv.splice(2, 0, program)
await import('../tools/run.mjs')
