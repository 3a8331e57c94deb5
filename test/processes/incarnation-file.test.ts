// Whether an earlier process is over, with real processes: one that runs, one that stands still,
// one that was killed, and whatever the file may say that is no proof.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import type { Test } from 'tap'
import { IncarnationFile } from '../../node/membership/incarnation-file.ts'

const BEGINS = `
  import { IncarnationFile } from ${JSON.stringify(join(import.meta.dirname, '../../node/membership/incarnation-file.ts'))}
  const [dir, incarnation] = process.argv.slice(1)
  new IncarnationFile({ dir, member: 'a', log: console }).begins(incarnation)
  console.log('begun')
  setInterval(() => {}, 1000)
`

function place(t: Test): {
  dir: string
  file: string
  warnings: string[]
  make: () => IncarnationFile
} {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-lives-'))
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  const warnings: string[] = []
  const say = (): void => undefined
  const log = {
    debug: say,
    info: say,
    error: say,
    warn: (_: object, text: string) => void warnings.push(text),
  }
  const data = join(dir, 'data')
  const make = (): IncarnationFile => new IncarnationFile({ dir: data, member: 'a', log })
  return { dir: data, file: join(data, 'lives-a.json'), warnings, make }
}

async function noted(t: Test, dir: string, incarnation: string) {
  const flags = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', BEGINS]
  const child = spawn(process.execPath, [...flags, dir, incarnation], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => void child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child
}

t.test('an incarnation is over when its process is, not before', async (t) => {
  const { dir, make } = place(t)
  const child = await noted(t, dir, 'one')
  const incarnations = make()
  t.equal(incarnations.isOver('one'), false, 'it runs')
  child.kill('SIGSTOP')
  t.equal(incarnations.isOver('one'), false, 'it stands still')
  child.kill('SIGKILL')
  await once(child, 'exit')
  t.equal(incarnations.isOver('one'), true)
  t.equal(incarnations.isOver('other'), false, 'of which nobody knows')
  t.equal(make().isOver('one'), true)
})

t.test('one of this very process goes on', async (t) => {
  const { make } = place(t)
  const incarnations = make()
  incarnations.begins('mine')
  t.equal(incarnations.isOver('mine'), false)
})

t.test('a number that another process has by now', async (t) => {
  const { file, make } = place(t)
  const incarnations = make()
  incarnations.begins('mine')
  const [mine] = JSON.parse(readFileSync(file, 'utf8')) as [{ process: object }]
  const as = (more: object): boolean => {
    const process = { ...mine.process, ...more }
    writeFileSync(file, JSON.stringify([{ incarnation: 'other', process }]))
    return incarnations.isOver('other')
  }
  t.equal(as({}), false)
  t.equal(as({ birth: '1' }), true)
  t.equal(as({ birth: '1', boot: 'another' }), false, 'another boot, or machine')
  t.equal(as({ birth: '1', namespace: 'pid:[1]' }), false, 'another container')
})

t.test('eight incarnations are remembered; what can not be read proves nothing', async (t) => {
  const { dir, file, warnings, make } = place(t)
  const child = await noted(t, dir, 'one')
  child.kill('SIGKILL')
  await once(child, 'exit')
  const incarnations = make()
  for (let i = 0; i < 7; i++) incarnations.begins(`mine-${i}`)
  t.equal(incarnations.isOver('one'), true)
  incarnations.begins('mine-7')
  t.equal(incarnations.isOver('one'), false)
  writeFileSync(file, '[{')
  t.equal(incarnations.isOver('one'), false)
  incarnations.begins('again')
  t.match(readFileSync(file, 'utf8'), /again/)
  t.strictSame(warnings, [])
  rmSync(file)
  mkdirSync(file)
  incarnations.begins('nowhere')
  t.match(warnings, [/can not be noted/])
})
