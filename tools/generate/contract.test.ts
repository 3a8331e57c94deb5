// The list of operations in protocol/CONTRACT.md is what the node's tables say.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { describedOperations, withOperations } from './contract.ts'

const text = readFileSync(join(import.meta.dirname, '../../protocol/CONTRACT.md'), 'utf8')
const HINT = 'run: node tools/run.mjs tools/generate/contract.ts'

t.test('the list is the generated one', async (t) => {
  t.equal(text, withOperations(text, describedOperations()), HINT)
})

t.test('another operation, path or permission makes another list', async (t) => {
  const [first, ...others] = describedOperations()
  for (const changed of [
    others,
    [{ ...first!, path: '/elsewhere' }, ...others],
    [{ ...first!, access: 'token', permissions: ['cluster:read'] } as const, ...others],
  ]) {
    t.not(withOperations(text, changed), text)
  }
  t.throws(() => withOperations('# Nothing', others), /lost the marks/)
})

t.test('who asks for a permission asks for a token', async (t) => {
  for (const { method, path, access, permissions } of describedOperations()) {
    if (access === 'none') t.equal(permissions, undefined, `${method} ${path}`)
  }
})

t.test('it is a contract of what is there: under 64 KB', async (t) => {
  t.ok(Buffer.byteLength(text) < 64 * 1024, `${Buffer.byteLength(text)} bytes`)
})
