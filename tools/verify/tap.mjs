// Reads what tap prints: from the Test Anything Protocol (version 14, as tap's `tap` reporter
// writes it) to the counts and failures that tools/verify.mjs shows.

const SUMMARY = /^# (\{ total: .*\})$/m
const FILE_OPENS = /^# Subtest: /
const FILE_CLOSES = /^(not )?ok \d+/
const SKIPPED = /^\s*(not )?ok \d+.* # (skip|todo)\b/i
const PASSED = /^\s+ok \d+ /
/** What a test wants shown where it passes, too: `t.comment('told: ...')`. */
const TOLD = /^\s*# told: (.+)$/

/**
 * @param {string} output
 * @returns {{
 *   passed: number,
 *   failed: number,
 *   skipped: number,
 *   failures: string[],
 *   skips: string[],
 *   told: string[],
 * }} counts of assertions (a test that is still to be written counts as skipped); for every test
 *   file that failed its lines without the assertions that passed; the lines of what was skipped;
 *   what tests tell whoever runs them
 */
export function readTap(output) {
  const lines = output.split('\n')
  const [, summary = ''] = SUMMARY.exec(output) ?? []
  const count = (/** @type {string} */ name) =>
    Number(new RegExp(`\\b${name}: (\\d+)`).exec(summary)?.[1] ?? 0)
  return {
    passed: count('pass'),
    failed: count('fail'),
    skipped: count('skip') + count('todo'),
    failures: failedFiles(lines),
    skips: lines.filter((line) => SKIPPED.test(line)).map((line) => line.trim()),
    told: lines.flatMap((line) => TOLD.exec(line)?.slice(1) ?? []),
  }
}

/** @param {readonly string[]} lines */
function failedFiles(lines) {
  /** @type {string[]} */
  const failures = []
  /** @type {string[] | null} */
  let block = null
  let failed = false
  const close = () => {
    if (failed && block !== null) failures.push(block.join('\n'))
    block = null
    failed = false
  }
  for (const line of lines) {
    if (FILE_OPENS.test(line)) {
      close()
      block = [line]
      continue
    }
    const verdict = FILE_CLOSES.exec(line)
    if (verdict !== null) {
      if (block === null || failed) {
        close()
        block = []
      }
      failed = verdict[1] !== undefined
      if (!failed) block = null
    }
    if (block !== null && !PASSED.test(line)) block.push(line)
  }
  close()
  return failures
}
