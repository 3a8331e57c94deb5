// What is secret is compared by timingSafeEqual, never by ===, which tells by its time how much of
// a guess was right. Looked for in the text of the program, for no clock shows it reliably.

import t from 'tap'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** What holds a secret, or is made of one, by the end of its name. */
const SECRET = /(hash|secret|password|verifier|challenge|digest|token|signature|seal)$/i
const COMPARISON = /([\w.!?[\]()]+)\s*[!=]==\s*([^\s)&|,;?]+)/g
/** Whether there is one at all, and of what kind or length it is, is no secret. */
const CONSTANT =
  /^(null|undefined|true|false|-?\d.*|['"`].*|typeof|this)$|\.(length|byteLength|size)$/

/** Files that compare what is kept here with what is kept here, with the reason. */
const OWN: Readonly<Record<string, string>> = {
  'administration/principal-changes.ts': 'whether a change makes another password',
}

/** Lines of a text that compare something secret with something that isn't a constant. */
function comparisonsIn(text: string): string[] {
  return text.split('\n').filter((line) =>
    [...line.matchAll(COMPARISON)].some(([, left = '', right = '']) => {
      const sides = [left, right].map((side) => side.replace(/[!?\])]+$/, ''))
      return !sides.some((side) => CONSTANT.test(side)) && sides.some((side) => SECRET.test(side))
    }),
  )
}

t.test('nothing in this room compares a secret by ===', (t) => {
  const files = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })
  const program = files.filter((path) => path.endsWith('.ts') && !/\.test\.ts$|testing/.test(path))
  t.ok(program.length > 10, `${program.length} files`)
  for (const path of program) {
    const found = comparisonsIn(readFileSync(join(import.meta.dirname, path), 'utf8'))
    if (Object.hasOwn(OWN, path)) t.ok(found.length > 0, `${path}: ${OWN[path]}`)
    else t.strictSame(found, [], path)
  }
  t.end()
})

t.test('such a comparison is found', (t) => {
  for (const line of [
    'if (sent.secret === kept.secret) return true',
    'return sha256(verifier) !== code.challenge',
    'const isIt = hash === kept',
  ]) {
    t.strictSame(comparisonsIn(line), [line], line)
  }
  for (const line of [
    'if (secret === null) return',
    'return hash.length === 32 && timingSafeEqual(hash, kept)',
    "if (form !== 'scrypt' || hash === undefined) return",
    'if (identity !== by) return',
  ]) {
    t.strictSame(comparisonsIn(line), [], line)
  }
  t.end()
})
