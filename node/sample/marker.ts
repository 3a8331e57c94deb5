// The sample's marker as a small file in the data directory. The state is on the disk before the
// first order is made.

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { SampleMarker } from './sample.ts'

export function fileMarker(dataDir: string): SampleMarker {
  const path = join(dataDir, 'sample.json')
  return {
    read() {
      let text: string
      try {
        text = readFileSync(path, 'utf8')
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
        throw error
      }
      return text.includes('"done"') ? 'done' : 'begun'
    },
    write(state) {
      const file = openSync(`${path}.new`, 'w', 0o600)
      try {
        writeSync(file, `${JSON.stringify({ sample: state })}\n`)
        fsyncSync(file)
      } finally {
        closeSync(file)
      }
      renameSync(`${path}.new`, path)
    },
  }
}
