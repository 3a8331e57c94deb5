// The bundled sample file: invented orders, made by cli/sample/generate.ts.

import { readFileSync } from 'node:fs'

export function readSampleFile(): string {
  return readFileSync(new URL('./orders.csv', import.meta.url), 'utf8')
}
