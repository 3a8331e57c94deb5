// The lock of a data directory, of real files and processes. Source: PROTOCOL 3.16.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { lockDirectory } from './directory-lock.ts'

function folder(t: Test): string {
  const parent = mkdtempSync(join(tmpdir(), 'kontor-lock-'))
  t.teardown(() => rmSync(parent, { recursive: true, force: true }))
  return join(parent, 'data')
}

/** A process that has the directory's lock until it is killed, or rejects. */
async function holderOf(t: Test, dir: string) {
  const file = new URL('directory-lock.ts', import.meta.url).href
  const script = `
    const { lockDirectory } = await import(${JSON.stringify(file)})
    await lockDirectory(${JSON.stringify(dir)}, { what: 'a node at http://127.0.0.1:1' })
    console.log('held')
    setInterval(() => {}, 1000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script])
  t.teardown(() => child.kill('SIGKILL'))
  const [said] = (await once(child.stdout, 'data')) as [Buffer]
  t.equal(said.toString().trim(), 'held')
  return child
}

void t.test('a directory is made, locked, and free again', async (t) => {
  const dir = folder(t)
  const lock = await lockDirectory(dir, { what: 'the first' })
  await t.rejects(lockDirectory(dir, { what: 'the second' }), {
    message:
      `${dir} is in use by process ${process.pid} (the first): stop it first, or name another ` +
      'directory (KONTOR_DATA_DIR)',
  })
  lock.release()
  t.notOk(existsSync(join(dir, 'lock.json')), 'nobody is named any more')
  const next = await lockDirectory(dir, { what: 'the second' })
  lock.release()
  t.ok(existsSync(join(dir, 'lock.json')), 'who has released it takes nothing from the next')
  next.release()
})

void t.test('another process has it, and it ends with that process', async (t) => {
  const dir = folder(t)
  const child = await holderOf(t, dir)
  await t.rejects(lockDirectory(dir, { what: 'me' }), {
    message: new RegExp(`in use by process ${child.pid} \\(a node at http://127.0.0.1:1\\)`),
  })
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  t.ok(existsSync(join(dir, 'lock.json')), 'a killed process leaves its name')
  const mine = await lockDirectory(dir, { what: 'me' })
  mine.release()
})
