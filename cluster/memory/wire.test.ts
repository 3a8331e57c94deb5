// The wire in memory does what every wire does.

import t from 'tap'
import { wireConformance } from '../testing/wire-conformance.ts'
import { memoryWire } from './wire.ts'

t.test('in memory', async (t) => {
  wireConformance(t, async () => {
    const wire = memoryWire((run) => void setImmediate(run))
    return { wires: [wire, wire] }
  })
})
