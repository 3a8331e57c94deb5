// The table at the end of `npm test`: how long each step took, how many tests it ran, and for a
// step that failed the line that runs it alone.

/**
 * @typedef {object} Row
 * @property {string} name of the step
 * @property {string} seconds as it is shown
 * @property {import('./steps.mjs').Counts} counts
 */

/** @typedef {[step: string, time: string, tests: string]} Cells */

/**
 * @param {readonly Row[]} rows one a step, in order
 * @returns {string} lines, each ended
 */
export function table(rows) {
  /** @type {readonly Cells[]} */
  const all = [['step', 'time', 'tests'], ...rows.map(cells)]
  const lines = all.map(
    ([step, time, tests]) => `${step.padEnd(8)} ${time.padStart(9)} ${tests.padStart(7)}`,
  )
  const failed = rows.filter(({ counts }) => counts.failed > 0)
  const again = failed.map(({ name }) => `${name} failed; alone: node tools/verify.mjs ${name}`)
  return ['', ...lines, ...again, ''].join('\n')
}

/**
 * @param {Row} row
 * @returns {Cells}
 */
function cells({ name, seconds, counts: { passed, failed, skipped } }) {
  const time = seconds === '-' ? seconds : `${seconds} s`
  return [name, time, String(passed + failed + skipped)]
}
