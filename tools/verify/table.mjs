// The table at the end of `npm test`: how long each step took, how many tests it ran, and for a
// step that failed the line that runs it alone.

/**
 * @param {readonly { name: string, seconds: string,
 *   counts: { passed: number, failed: number, skipped: number } }[]} rows one a step, in order;
 *   `seconds`: as it is shown
 * @returns {string} lines, each ended
 */
export function table(rows) {
  const lines = [['step', 'time', 'tests'], ...rows.map(cells)].map(
    ([step, time, tests]) => `${step.padEnd(8)} ${time.padStart(9)} ${tests.padStart(7)}`,
  )
  const failed = rows.filter(({ counts }) => counts.failed > 0)
  const again = failed.map(({ name }) => `${name} failed; alone: node tools/verify.mjs ${name}`)
  return ['', ...lines, ...again, ''].join('\n')
}

function cells({ name, seconds, counts: { passed, failed, skipped } }) {
  const time = seconds === '-' ? seconds : `${seconds} s`
  return [name, time, String(passed + failed + skipped)]
}
