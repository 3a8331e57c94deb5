// The bundled sample file: invented orders, made by tools/generate/sample.ts.

import { readFileSync } from 'node:fs'

export function readSampleFile(): string {
  return readFileSync(new URL('./orders.jsonl', import.meta.url), 'utf8')
}
