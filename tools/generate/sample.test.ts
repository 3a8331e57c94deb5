// The bundled sample is what its generator makes of its rows: neither can change without the other.

import t from 'tap'
import { sampleCsv, sampleLines } from './sample.ts'
import { readFileSync } from 'node:fs'

const HINT = 'run: node tools/run.mjs tools/generate/sample.ts'

t.test('node/sample/orders.jsonl is what the rows give', (t) => {
  const file = readFileSync(new URL('../../node/sample/orders.jsonl', import.meta.url), 'utf8')
  t.ok(file === sampleLines(sampleCsv()), HINT)
  t.end()
})

t.test('another row gives other orders', (t) => {
  const csv = sampleCsv()
  const [header, first = '', ...rows] = csv.split('\n')
  const lines = sampleLines(csv)
  t.not(sampleLines([header, ...rows].join('\n')), lines)
  t.not(sampleLines([header, first.replace(',6,', ',7,'), ...rows].join('\n')), lines)
  t.end()
})
