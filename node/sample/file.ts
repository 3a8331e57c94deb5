// The sample as files: the bundled orders (invented, made by cli/sample/generate.ts), and the
// marker in the data directory. It stands between the sample loader and the disk.

import { readFileSync } from 'node:fs'
import { fileMarker } from './marker.ts'
import type { SampleMarker } from './sample.ts'

export function readSampleFile(): string {
  return readFileSync(new URL('./orders.csv', import.meta.url), 'utf8')
}

/** What a node gives its sample loader. */
export function sampleMarker(dataDir: string): { marker: SampleMarker; readText: () => string } {
  return { marker: fileMarker(dataDir), readText: readSampleFile }
}
