// The README's first ten things, pasted into a shell as they stand, against a new node. Source:
// README "The first ten things".

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { SECRET, startNode } from '../harness/node-process.ts'

const README = readFileSync(join(import.meta.dirname, '../../README.md'), 'utf8')
const START = '## The first ten things'

function blocks(): string[] {
  const part = README.slice(README.indexOf(START)).split('\n## ')[0] ?? ''
  return [...part.matchAll(/^( *)```sh\n([^]*?)\n\1```$/gm)].map(([, indent, text]) =>
    text!.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  )
}

t.test('every block answers what it promises', async (t) => {
  const node = await startNode(t)
  const cwd = t.testdir({ data: { 'bootstrap.json': JSON.stringify({ clientSecret: SECRET }) } })
  const [token = '', ...others] = blocks()
  t.ok(others.length >= 9, `${others.length} blocks`)
  for (const block of others) {
    const script = `${token}\n${block}`.replaceAll('localhost:8080', `127.0.0.1:${node.port}`)
    const { stdout, stderr } = spawnSync('bash', ['-c', script], { cwd, encoding: 'utf8' })
    t.equal(stderr, '', block)
    t.notMatch(stdout, /"errors":\[\{|"success":false/, block)
    t.match(stdout, /^[[{]/m, 'it is answered')
  }
})
