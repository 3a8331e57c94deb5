// The splitter gives the same lines however the bytes are cut, and keeps no line that is too long.

import fc from 'fast-check'
import t from 'tap'
import { LineSplitter } from './lines.ts'
import type { Line } from './lines.ts'

type Shown = [number, string]

function split(chunks: readonly Buffer[], lineBytesMax: number): Shown[] {
  const splitter = new LineSplitter(lineBytesMax)
  const shown: Shown[] = []
  const show = (line: Line): void => {
    shown.push([line.number, typeof line.bytes === 'string' ? line.bytes : line.bytes.toString()])
  }
  for (const chunk of chunks) {
    splitter.push(chunk)
    for (let line = splitter.take(); line !== null; line = splitter.take()) show(line)
  }
  const last = splitter.end()
  if (last !== null) show(last)
  return shown
}

const of = (text: string, max = 100): Shown[] => split([Buffer.from(text)], max)

t.test('lines, numbers and line ends', (t) => {
  t.same(of('a\nbc\n'), [
    [1, 'a'],
    [2, 'bc'],
  ])
  t.same(
    of('a\nbc'),
    [
      [1, 'a'],
      [2, 'bc'],
    ],
    'the last line needs no end',
  )
  t.same(
    of('\n\na\r\n\r\nb'),
    [
      [3, 'a'],
      [5, 'b'],
    ],
    'empty lines count and are skipped',
  )
  t.same(of(''), [])
  t.same(of('\r'), [], 'a lone return is an empty line')
  t.same(of('abc\nabcd\nx', 3), [
    [1, 'abc'],
    [2, 'too-large'],
    [3, 'x'],
  ])
  t.same(of('abc\r\nabcd\r\nabcd', 3), [
    [1, 'abc'],
    [2, 'too-large'],
    [3, 'too-large'],
  ])
  t.end()
})

t.test('however the bytes are cut', (t) => {
  const text = fc.array(fc.constantFrom('a', 'é', '\n', '\r', '\r\n', 'bcd'), { maxLength: 40 })
  const cuts = fc.array(fc.nat({ max: 80 }), { maxLength: 10 })
  const max = 5
  fc.assert(
    fc.property(text, cuts, (parts, at) => {
      const bytes = Buffer.from(parts.join(''))
      const sorted = [0, ...at.filter((n) => n < bytes.length).sort((a, b) => a - b), bytes.length]
      const chunks = sorted.slice(1).map((end, i) => bytes.subarray(sorted[i], end))
      const expected: Shown[] = []
      for (const [i, whole] of bytes.toString().split('\n').entries()) {
        const line = whole.endsWith('\r') ? whole.slice(0, -1) : whole
        if (line === '') continue
        expected.push([i + 1, Buffer.byteLength(line) > max ? 'too-large' : line])
      }
      if (JSON.stringify(split(chunks, max)) !== JSON.stringify(expected)) {
        throw new Error(JSON.stringify({ chunks: chunks.map(String), expected }))
      }
    }),
    { numRuns: 3000 },
  )
  t.end()
})

t.test('a line that never ends costs no memory', (t) => {
  const splitter = new LineSplitter(1000)
  const before = process.memoryUsage().arrayBuffers
  for (let i = 0; i < 1000; i++) {
    splitter.push(Buffer.alloc(100_000, 0x61))
    if (splitter.take() !== null) throw new Error('there is no line yet')
  }
  t.ok(process.memoryUsage().arrayBuffers - before < 80_000_000)
  splitter.push(Buffer.from('\nb\n'))
  t.same(splitter.take(), { number: 1, bytes: 'too-large' })
  t.same(String(splitter.take()!.bytes), 'b')
  t.end()
})
