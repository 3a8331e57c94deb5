// One node is one process: reads the settings, starts the node, stops it on SIGTERM and SIGINT.
// Everything else that starts a node (npm start, containers, tests) ends here.

import { readFileSync } from 'node:fs'
import { isatty } from 'node:tty'
import { EXIT_CONFIG, loadSettings } from '../config/load.ts'
import { settingsReference } from '../config/reference.ts'
import { createVoice } from './log/log.ts'
import { harmless } from './log/log-error.ts'
import { lineWriter, outletOf } from './log/log-lines.ts'
import { giveMemoryBackWhenIdle } from './idle-memory.ts'
import { startNode, type KontorNode } from './node.ts'
import { addressOf, greeting, metricsAddressOf, upLine } from './greeting.ts'

const EXIT_DATA = 65
const STANDARD_OUTPUT = 1

// Before the settings are read: who asks what they are may have them wrong.
if (process.argv.includes('--help')) {
  process.stdout.write(settingsReference())
  process.exit(0)
}

const loaded = loadSettings(process.env, process.argv.slice(2), (path) =>
  readFileSync(path, 'utf8'),
)
if ('problems' in loaded) {
  process.stderr.write(`Kontor can't start with these settings:\n`)
  for (const problem of loaded.problems) process.stderr.write(`  - ${problem}\n`)
  process.exit(EXIT_CONFIG)
}
const settings = loaded.ok
const isTerminal = isatty(STANDARD_OUTPUT)
const to = lineWriter(outletOf(STANDARD_OUTPUT))
const { log, isText, tell } = createVoice(settings, { to, isTerminal })
const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string }

const fatal = (error: Error): void => {
  log.error({ err: error }, 'this node can not go on')
  if (!isText) process.stderr.write(`Kontor stops at once: ${harmless(error.message)}\n`)
  process.exit(1)
}

let node: KontorNode | null = null
let isStopping = false
const stop = (signal: string): void => {
  // Ctrl-C reaches every process at the terminal, and those between it and this one pass it on.
  if (isStopping) return
  isStopping = true
  log.info({ signal }, node === null ? 'stopping while it starts' : 'stopping')
  // Nobody has been answered yet, and what is half done is as after a crash.
  if (node === null) process.exit(0)
  node.stop().then(() => process.exit(0), fatal)
}
// Before it starts: process 1 of a container ignores what it has no handler for. A terminal that is
// closed says SIGHUP.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, stop)

// Everything that it writes, by whatever library, is for its user alone.
process.umask(0o077)
try {
  node = await startNode({ settings, log, version, tell, isTerminal, onFatal: fatal })
  const { port } = node
  if (isText) tell(greeting(settings, node))
  else {
    const metrics = metricsAddressOf(settings, node)
    const { dataDir } = settings
    tell(upLine(settings, port), { url: addressOf(settings, port), metrics, dataDir })
  }
  giveMemoryBackWhenIdle()
} catch (error) {
  process.stderr.write(`Kontor can't start: ${harmless((error as Error).message)}\n`)
  // An engine that is set to lose data is a setting to mend, not data to restore; so is a key.
  const isSetting = ['EngineUnfit', 'WrongSecretsKey'].includes((error as Error).name)
  process.exit(isSetting ? EXIT_CONFIG : EXIT_DATA)
}
