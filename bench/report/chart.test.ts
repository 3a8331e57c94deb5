// Charts of figures that are all alike, nothing among them.

import t from 'tap'
import { lineChart } from './chart.ts'

t.test('every number has a place, also where there is no spread', async (t) => {
  for (const ys of [[0], [0, 0], [3, 3], [0, 5], [1e-9]]) {
    for (const logY of [false, true]) {
      const points = ys.map((y, x) => [x, y] as const)
      const titles = { title: 'a', xTitle: 'b', yTitle: 'c' }
      const chart = lineChart({ ...titles, series: [{ name: 'd', points }], logY })
      t.notMatch(chart, /NaN|undefined|Infinity/, `${ys.join()} ${logY}`)
    }
  }
})
