// A node at a terminal, and one whose output goes nowhere: what a person reads there, and that it
// outlives who reads. The terminal is one of script(1). Source: CONTRACT 0 "Log", "Bootstrap".

import { spawn } from 'node:child_process'
import { existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { freePort } from '../../tools/engines/server-process.mjs'
import type { Test } from 'tap'
import { MAIN } from '../harness/node-process.ts'
import { until } from '../harness/patience.ts'

interface Started {
  readonly dir: string
  readonly output: () => string
  /** Closes the terminal. */
  readonly hangUp: () => void
  readonly endCode: () => string
}

/** A node with a terminal of its own. Its exit code is written beside its data. */
function atTerminal(t: Test): Started {
  const dir = t.testdir({})
  const code = join(dir, 'code')
  // As shells do, it tells its job that the terminal has gone; then it says how that has ended.
  const job = `'${process.execPath}' --disable-warning=ExperimentalWarning '${MAIN}'`
  const pid = join(dir, 'pid')
  const command = `${job} & echo $! > '${pid}'; trap "kill -HUP $!" HUP; wait $!; wait $!; echo $? > '${code}'`
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    env: {
      PATH: process.env['PATH'],
      SHELL: '/bin/sh',
      KONTOR_DATA_DIR: join(dir, 'data'),
      KONTOR_HTTP_PORT: '0',
      KONTOR_SAMPLE: 'true',
      KONTOR_LOG_LEVEL: 'info',
    },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  let text = ''
  child.stdout.on('data', (bytes: Buffer) => void (text += bytes.toString()))
  t.teardown(() => {
    child.kill('SIGKILL')
    if (existsSync(pid) && !existsSync(code)) process.kill(Number(readFileSync(pid)), 'SIGKILL')
  })
  return {
    dir,
    output: () => text.replaceAll('\r\n', '\n'),
    hangUp: () => void child.kill('SIGKILL'),
    endCode: () => (existsSync(code) ? readFileSync(code, 'utf8').trim() : ''),
  }
}

const skip = process.platform === 'linux' ? false : 'script(1) is another program here'

t.test('sentences, and the secret, for who sits there', { skip }, async (t) => {
  const node = atTerminal(t)
  await until('the sample is in', () => /Loaded \d+ sample orders/.test(node.output()))
  const output = node.output()
  t.match(output, /^Kontor is up at http:\/\/127\.0\.0\.1:\d+, its data in \//m)
  t.notMatch(output, /^\{/m, 'no JSON')
  const file = join(node.dir, 'data', 'bootstrap.json')
  const { clientSecret } = JSON.parse(readFileSync(file, 'utf8')) as { clientSecret: string }
  t.match(output, `client_secret ${clientSecret} (also in ${file})`)
  t.equal(output.split('sample orders').length, 2, 'told once')

  node.hangUp()
  await until('it has ended', () => node.endCode() !== '')
  t.equal(node.endCode(), '0', 'a terminal that is closed makes it drain')
})

const noFull = existsSync('/dev/full') ? false : 'there is no device that is always full'

t.test('one whose log can not be written goes on', { skip: noFull }, async (t) => {
  const port = await freePort()
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN], {
    env: {
      PATH: process.env['PATH'],
      KONTOR_DATA_DIR: t.testdir({}),
      KONTOR_HTTP_PORT: String(port),
      KONTOR_LOG_LEVEL: 'info',
    },
    stdio: ['ignore', openSync('/dev/full', 'w'), 'inherit'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let code: number | null = null
  child.on('exit', (ended) => void (code = ended ?? -1))
  await until('it is ready', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/health/ready`).catch(() => null)
    await answer?.arrayBuffer()
    return answer?.status === 200
  })
  child.kill('SIGTERM')
  await until('it has ended', () => code !== null)
  t.equal(code, 0)
})
