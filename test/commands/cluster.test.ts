// npm run cluster: its nodes as processes, with a program in their place that only says that it is
// ready; that real nodes make a cluster is shown in test/cluster.

import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import {
  endFormerRun,
  forgetRun,
  launchNode,
  noteRun,
  ready,
  stopNodes,
} from '../../cli/cluster-nodes.mjs'
import { freePort, isAlive } from '../../tools/engines/server-process.mjs'

const ROOT = join(import.meta.dirname, '../..')

/** Answers that it is ready, ends on SIGTERM unless it is told to be stubborn. */
const NODE = `
  import { createServer } from 'node:http'
  const { KONTOR_HTTP_PORT, KONTOR_MEMBER_ID, HOW } = process.env
  console.log(KONTOR_MEMBER_ID, process.argv.slice(2).join(' '))
  if (HOW === 'broken') process.exit(65)
  createServer((_, answer) => answer.end('ok')).listen(KONTOR_HTTP_PORT, '127.0.0.1')
`

function place(t: Test, how: string) {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-cluster-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  mkdirSync(join(dir, 'cli'))
  writeFileSync(join(dir, 'cli', 'node.mjs'), NODE)
  writeFileSync(join(dir, 'package.json'), '{"type": "module"}')
  const env = { PATH: process.env['PATH'], HOW: how }
  const launch = { node: process.execPath, env, root: dir, dir, settingsFile: 'settings.json' }
  const ends: string[] = []
  const start = async (name: string, port = 0) => {
    const wanted = port || (await freePort())
    return launchNode(name, wanted, launch, (node: string, by: string) =>
      ends.push(`${node} ${by}`),
    )
  }
  return { dir, ends, start }
}

t.test('nodes are started by name and port, and ended', async (t) => {
  const { dir, ends, start } = place(t, 'well')
  const one = await start('one')
  await ready(one)
  const two = await start('two', one.port)
  await ready(two)
  t.not(two.port, one.port, 'a port that is taken is left alone')
  t.match(readFileSync(join(dir, 'two.log'), 'utf8'), 'two --config settings.json')
  await stopNodes([one, two])
  t.notOk(isAlive(one) || isAlive(two))
  // That a process has ended is known to the system before it is told here.
  const deadline = Date.now() + 10_000
  while (ends.length < 2 && Date.now() < deadline) await new Promise((go) => setTimeout(go, 10))
  t.strictSame(ends.toSorted(), ['one ended by SIGTERM', 'two ended by SIGTERM'])
})

t.test('a node that ends before it is ready says where to look', async (t) => {
  const { start } = place(t, 'broken')
  await t.rejects(ready(await start('one')), /one has ended; see .*one\.log/)
})

t.test('what a killed run has left is ended at the next start', async (t) => {
  const { dir, start } = place(t, 'well')
  const one = await start('one')
  await ready(one)
  noteRun(dir, [one])
  await t.rejects(endFormerRun(dir), /runs on .* already/, 'not while that run lives')
  t.ok(isAlive(one))

  const run = JSON.parse(readFileSync(join(dir, 'run.json'), 'utf8')) as object
  writeFileSync(join(dir, 'run.json'), JSON.stringify({ ...run, birth: 'of another process' }))
  await endFormerRun(dir)
  t.notOk(isAlive(one))
  await endFormerRun(dir)
  forgetRun(dir)
})

t.test('options are checked before anything is started', async (t) => {
  for (const option of ['--nodes=0', '--nodes=many', '--port=70000', '--nonsense']) {
    const { status, stderr } = spawnSync(process.execPath, ['cli/cluster.mjs', option], {
      cwd: ROOT,
      encoding: 'utf8',
    })
    t.equal(status, 1, option)
    t.match(stderr, option.split('=')[0]!)
  }
})
