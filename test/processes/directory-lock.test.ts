// The lock of a data directory, of real files and processes. Source: PROTOCOL 3.16.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs, { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import t, { type Test } from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { lockDirectory } from '../../storage/embedded/directory-lock.ts'

function folder(t: Test): string {
  const parent = mkdtempSync(join(tmpdir(), 'kontor-lock-'))
  t.teardown(() => rmSync(parent, { recursive: true, force: true }))
  return join(parent, 'data')
}

/** A process that has the directory's lock until it is killed, or rejects. */
async function holderOf(t: Test, dir: string) {
  const file = new URL('../../storage/embedded/directory-lock.ts', import.meta.url).href
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

/** Has the file system do other than it would, until the test ends. */
function change(t: Test, calls: Partial<typeof fs>): void {
  const before = Object.fromEntries(
    Object.keys(calls).map((name) => [name, fs[name as keyof typeof fs]]),
  )
  Object.assign(fs, calls)
  syncBuiltinESMExports()
  t.teardown(() => {
    Object.assign(fs, before)
    syncBuiltinESMExports()
  })
}

void t.test('who is about to end is waited for', async (t) => {
  const dir = folder(t)
  const lock = await lockDirectory(dir, { what: 'the first' })
  const began = performance.now()
  await t.rejects(lockDirectory(dir, { what: 'the second' }))
  const waited = performance.now() - began
  t.ok(waited > 0.9 * LIMITS.embedded.directoryLockWaitMs, `${waited} ms`)
  lock.release()
})

void t.test('who holds it is named for as long as he holds it, and no longer', async (t) => {
  const dir = folder(t)
  const lock = await lockDirectory(dir, { what: 'the first' })
  let isHeld = false
  const remove = fs.rmSync
  change(t, {
    rmSync: (...args) => {
      const other = new DatabaseSync(join(dir, 'lock'), { timeout: 0 })
      try {
        other.exec('BEGIN EXCLUSIVE')
      } catch {
        isHeld = true
      }
      other.close()
      remove(...args)
    },
  })
  lock.release()
  t.ok(isHeld, 'else it might be the name of the next one')
  t.notOk(existsSync(join(dir, 'lock.json')))
})

void t.test('a full disk keeps nobody from starting, any other trouble does', async (t) => {
  const dir = folder(t)
  let code = 'ENOSPC'
  change(t, {
    writeSync: () => {
      throw Object.assign(new Error(`it is ${code}`), { code })
    },
  })
  const lock = await lockDirectory(dir, { what: 'the first' })
  await t.rejects(lockDirectory(dir, { what: 'the second' }), /in use by another process: /)
  lock.release()
  code = 'EIO'
  await t.rejects(lockDirectory(dir, { what: 'the first' }), { code: 'EIO' })
  code = 'ENOSPC'
  const next = await lockDirectory(dir, { what: 'who comes after' })
  next.release()
})
