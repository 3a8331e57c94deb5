// Chance for tests of live queries: the same in each run, and never the same twice.

import type { FillRandom } from '../../../../protocol/ids.ts'

export function countingChance(): FillRandom {
  let times = 0
  return (bytes) => {
    new DataView(bytes.buffer, bytes.byteOffset).setUint32(0, ++times)
  }
}
