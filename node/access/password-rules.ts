// Which passwords may not be chosen: too short ones, and such as are guessed first: a few letters
// over and over, runs of the alphabet or a keyboard, common words with digits behind them, one's
// own name. Source: CONTRACT 1.8 "Passwords", NIST SP 800-63B 3.1.1.2.

import { LIMITS } from '../../config/limits.ts'

/** What long common passwords are made of, alone, over and over, or with digits around. */
const WORDS: readonly string[] = [
  'password passwort passw passwd parola wachtwoord losenord motdepasse contrasena senha haslo',
  'qwerty qwertz azerty asdfgh zxcvbn qazwsx letmein welcome willkommen valkommen administrator',
  'admin root guest login changeme default iloveyou football baseball basketball liverpool',
  'monkey dragon superman batman spiderman pokemon starwars michael jessica jordan charlie',
  'sunshine princess butterfly trustno computer internet hello kontor',
].flatMap((line) => line.split(' '))

/** Neighbours on keyboards, in the alphabet and in digits, forwards; backwards counts, too. */
const RUNS = [
  'abcdefghijklmnopqrstuvwxyz',
  '01234567890',
  'qwertyuiop',
  'qwertzuiop',
  'azertyuiop',
  'asdfghjkl',
  'zxcvbnm',
  'yxcvbnm',
  '1qaz2wsx3edc4rfv5tgb6yhn7ujm',
  '1q2w3e4r5t6y7u8i9o0p',
].flatMap((run) => [run, [...run].toReversed().join('')])

/** Fewer characters than these are left where the rest is guessed at once. */
const LEFT_MIN = 4
/** A run is one from this length on. */
const RUN_MIN = 4

/** What is wrong with a password, or null. `about`: what the person is called. */
export function weaknessOf(password: string, about: readonly string[]): string | null {
  const { passwordCharsMin: min, passwordCharsMax: max } = LIMITS.access
  // A person counts characters, not code units.
  const { length } = [...password]
  if (length < min) return `has ${length} characters; it needs ${min}`
  if (length > max) return `has more than ${max} characters`
  if (!password.isWellFormed()) return 'holds half a surrogate pair'
  const plain = plainOf(password)
  if (isRepeated(plain)) return 'is the same few characters over and over'
  const own = about.flatMap((text) => plainOf(text).split(/[^\p{L}\p{N}]+/u))
  const isEasy = leftOf(plain, own) < LEFT_MIN
  return isEasy
    ? 'is made of what is guessed first: a common word, your name, neighbouring keys'
    : null
}

/** Lower case, without marks. */
function plainOf(text: string): string {
  return text
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
}

/** A unit of at most four characters fills all of it. */
function isRepeated(text: string): boolean {
  const chars = [...text]
  for (let unit = 1; unit <= 4; unit++) {
    if (chars.every((char, i) => char === chars[i % unit])) return true
  }
  return false
}

/** Characters that are left without runs, common words and what the person is called. */
function leftOf(text: string, own: readonly string[]): number {
  const rest = withoutRuns(text)
  const known = new Set([...WORDS, ...own.filter((word) => word.length >= 3)])
  const asMeant = rest.replace(/[0134578@$!]/g, (char) => LEET[char]!)
  return Math.min(...[rest, asMeant].map((from) => withoutWords(from, known)))
}

const LEET: Readonly<Record<string, string>> = {
  ...{ 0: 'o', 1: 'i', 3: 'e', 4: 'a', 5: 's', 7: 't', 8: 'b', '@': 'a', $: 's', '!': 'i' },
}

function withoutRuns(text: string): string {
  let left = ''
  for (let at = 0; at < text.length;) {
    const run = runAt(text, at)
    if (run >= RUN_MIN) at += run
    else left += text[at++]!
  }
  return left
}

/** Length of the longest run that begins there. */
function runAt(text: string, at: number): number {
  let most = 1
  while (at + most < text.length && text[at + most] === text[at]) most++
  for (const run of RUNS) {
    const from = run.indexOf(text.slice(at, at + RUN_MIN))
    if (from >= 0) most = Math.max(most, alike(text.slice(at), run.slice(from)))
  }
  return most
}

/** How many characters both begin with. */
function alike(a: string, b: string): number {
  let length = 0
  while (length < a.length && a[length] === b[length]) length++
  return length
}

/** How many characters no known word covers; where there is one digits and signs count as none. */
function withoutWords(text: string, known: ReadonlySet<string>): number {
  const left: string[] = []
  for (let at = 0; at < text.length;) {
    const length = wordAt(text, at, known)
    if (length === 0) left.push(text[at]!)
    at += Math.max(1, length)
  }
  const hadWord = left.length < text.length
  return hadWord ? left.filter((char) => /\p{L}/u.test(char)).length : left.length
}

const WORD_MAX = 40

function wordAt(text: string, at: number, known: ReadonlySet<string>): number {
  for (let length = Math.min(WORD_MAX, text.length - at); length > 0; length--) {
    if (known.has(text.slice(at, at + length))) return length
  }
  return 0
}
