// The bundled sample is what its generator makes: neither can change without the other.

import t from 'tap'
import { sampleText } from './sample.ts'
import { readFileSync } from 'node:fs'

t.test('node/sample/orders.csv is the generated text', (t) => {
  const file = readFileSync(new URL('../../node/sample/orders.csv', import.meta.url), 'utf8')
  t.ok(file === sampleText(), 'run: node tools/generate/sample.ts > node/sample/orders.csv')
  t.end()
})
