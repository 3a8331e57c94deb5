// What becomes of lines where they can't be written: nothing is thrown, nobody waits for long, and
// a line that comes later is whole.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { lineWriter } from './log-lines.ts'

/** A place to write to that takes this many bytes before each of these failures, then all. */
function outlet(...turns: (number | string)[]) {
  const said = { text: '', pauses: 0, tries: 0 }
  const put = (bytes: Buffer): number => {
    said.tries++
    const turn = turns.shift() ?? bytes.length
    if (typeof turn === 'string') throw Object.assign(new Error(turn), { code: turn })
    const part = bytes.subarray(0, turn)
    said.text += part.toString()
    return part.length
  }
  return { said, put, pause: () => void said.pauses++ }
}

t.test('a line is written in as many parts as it takes', async (t) => {
  const { said, ...to } = outlet(2, 'EAGAIN', 1, 'EAGAIN')
  lineWriter(to).write('a line ü\n')
  t.equal(said.text, 'a line ü\n')
  t.equal(said.pauses, 2)
})

t.test('one that can not be written is dropped, and the next one is tried', async (t) => {
  for (const code of ['ENOSPC', 'EIO', 'EPIPE', 'EBADF']) {
    const { said, ...to } = outlet(code, code)
    const writer = lineWriter(to)
    for (const line of ['one\n', 'two\n', 'three\n']) writer.write(line)
    t.equal(said.text, 'three\n', code)
    t.equal(said.pauses, 0)
  }
})

t.test('a line that was cut does not run into the next one', async (t) => {
  const { said, ...to } = outlet(2, 'ENOSPC', 'ENOSPC')
  const writer = lineWriter(to)
  for (const line of ['one\n', 'two\n', 'three\n', 'four\n']) writer.write(line)
  t.equal(said.text, 'on\nthree\nfour\n')
})

t.test('a pipe that nobody reads is waited for once', async (t) => {
  const full = Array.from({ length: LIMITS.node.logWaitMs + 1 + 3 }, () => 'EAGAIN')
  const { said, ...to } = outlet(...full)
  const writer = lineWriter(to)
  for (let n = 0; n < 4; n++) writer.write('lost\n')
  t.equal(said.pauses, LIMITS.node.logWaitMs)
  t.equal(said.tries, full.length)
  writer.write('here again\n')
  t.equal(said.text, 'here again\n')
})
