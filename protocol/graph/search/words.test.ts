// Names and descriptions are found as a shop expects it, whatever language they are in. Source:
// CONTRACT 1.4.2.

import fc from 'fast-check'
import t from 'tap'
import { rankOf, NO_RANK } from './phrase-rank.ts'
import { parsePhrase } from './phrase.ts'
import { NO_NODES } from './search-document.ts'
import { SEARCH_LIMITS } from './search-index.ts'
import { folded, keywordOf, wordsOf } from './words.ts'

const finds = (phrase: string, text: string, keyword = false): boolean => {
  const fields = [{ path: ['text'], keyword, column: 0 }]
  const search = { phrase: parsePhrase(phrase), fields, edges: [], isAll: true }
  return rankOf(search, { text }, NO_NODES) !== NO_RANK
}

t.test('Swedish, German, Turkish, Polish and other names', async (t) => {
  const found: readonly (readonly [string, string])[] = [
    ['oberg', 'Åsa Öberg'],
    ['ÅSA ÖBERG', 'asa oberg'],
    ['Öberg', 'O\u0308berg'],
    ['muller', 'Müller'],
    ['strasse', 'Weiße Straße 5'],
    ['Weiße', 'WEISSE'],
    ['GROẞ', 'groß'],
    ['istanbul', 'İSTANBUL'],
    ['ISPARTA', 'ısparta'],
    ['ışık', 'ISIK'],
    ['lodz', 'Łódź'],
    ['Søren', 'SOREN'],
    ['obrien', "O'Brien"],
    ["o'brien", 'OBrien'],
    ['O’Brien', "Mary O'Brien"],
    ["o'brien", 'O\uff07Brien, O\u00b4Brien'],
    ["'t hof", "Café 't Hof"],
    ['’t Hof', "Café 't Hof"],
    ['hertogenbosch', "'s-Hertogenbosch"],
    ["'s-hertog*", '’s-Hertogenbosch'],
    ["d'artagnan", 'D’Artagnan'],
    ['hochzeits\u00adtisch', 'Hochzeitstisch'],
    ['hochzeitstisch', 'Hochzeits\u00adtisch'],
    ['می‌خواهم', 'می\u200cخواهم'],
    ['میخواهم', 'می\u200cخواهم'],
    ['क्ष', 'क्\u200dष'],
    ['\ufeffmug', 'mug\u2060\u200e'],
    ['blue mug', 'blue\u200bmug'],
    ['đặng', 'Dang Thi'],
    ['ΑΣ ΟΔΟΣ', 'οδος ας'],
    ['jean-luc', 'Jean Luc Picard'],
    ['picar*', 'Jean-Luc Picard'],
    ['ada@example.com', 'write to Ada@Example.com'],
  ]
  for (const [phrase, text] of found) t.ok(finds(phrase, text), `${phrase}: ${text}`)
  const not: readonly (readonly [string, string])[] = [
    ['berg', 'Öberg'],
    ['mueller', 'Müller'],
    ['"luc jean"', 'Jean Luc'],
    ['pic', 'Picard'],
  ]
  for (const [phrase, text] of not) t.notOk(finds(phrase, text), `${phrase}: ${text}`)
})

t.test('Chinese, Japanese, Korean and Thai are found by their characters', async (t) => {
  for (const [phrase, text] of [
    ['小明', '王小明'],
    ['王', '王小明'],
    ['手机壳', '苹果手机壳 蓝色'],
    ['手机 蓝色', '苹果手机壳 蓝色'],
    ['ガラス', 'ｶﾞﾗｽのコップ'],
    ['コップ', 'ガラスのコップ'],
    ['철수', '김철수'],
    ['เสื้อ', 'ขายเสื้อยืด'],
    ['apple 手机', 'Apple手机壳'],
  ] as const) {
    t.ok(finds(phrase, text), `${phrase}: ${text}`)
  }
  t.notOk(finds('机手', '手机'))
  t.notOk(finds('か', 'が'), 'what makes another Kana is no accent')
})

t.test('keywords are found whole, by case alone', async (t) => {
  t.ok(finds('so-1001', 'SO-1001', true))
  t.ok(finds('"so 1001"', ' SO  1001 ', true))
  t.ok(finds('istanbul', 'İSTANBUL', true))
  t.ok(finds('so-*', 'SO-1001', true))
  t.notOk(finds('1001', 'SO-1001', true))
  t.notOk(finds('muller', 'Müller', true))
  t.ok(finds('MÜLLER', 'Mu\u0308ller', true))
  t.ok(finds('85123a', '\u200e85123\u00adA\u200b', true))
  t.ok(finds("'t-1", "'T-1", true))
  t.equal(keywordOf(' \t\u00ad'), null)
})

t.test('short words count in quotes alone', async (t) => {
  t.ok(finds('mug of 3', 'a mug'))
  t.notOk(finds('mug "3"', 'a mug'))
  t.ok(finds('"a"', 'a mug'))
  t.notOk(finds('a', 'a mug'))
  t.notOk(finds('mu*', 'a mug'))
})

t.test('what is asked meets what is indexed', async (t) => {
  const text = fc.string({ unit: 'binary', maxLength: 30 })
  fc.assert(
    fc.property(text, (given) => {
      t.equal(folded(folded(given)), folded(given), 'folding twice is folding once')
      for (const word of wordsOf(given)) {
        if (!/^[^\s"\u0080-\u009f]+$/.test(word))
          throw new Error(`a word is ${JSON.stringify(word)}`)
        if (!wordsOf(word).includes(word)) throw new Error(`${word} is not found by itself`)
      }
      if (/[^a-z0-9\u0080-\u{10ffff}]/u.test(keywordOf(given) ?? ''))
        throw new Error('a sign is left')
    }),
    { numRuns: 300 },
  )
})

t.test('what is not seen finds nothing else', async (t) => {
  const letter = fc.constantFrom(...'aZ9éßiİ王か \t-*"\'’.', '\u0301', 'ی', 'क्')
  const hidden = fc.constantFrom(...'\u00ad\u200c\u200d\u200e\u2060\ufeff\ufe0f')
  const marked = fc.array(fc.tuple(letter, fc.option(hidden, { nil: '' })), { maxLength: 12 })
  const told = (phrase: string): unknown => {
    try {
      return parsePhrase(phrase)
    } catch (error) {
      return (error as Error).message
    }
  }
  fc.assert(
    fc.property(marked, (parts) => {
      const bare = parts.map(([one]) => one).join('')
      const text = parts.flat().join('')
      t.same(wordsOf(text), wordsOf(bare))
      t.equal(keywordOf(text), keywordOf(bare))
      t.same(told(text), told(bare))
    }),
    { numRuns: 500 },
  )
})

t.test('bounds', async (t) => {
  const { searchWordsMax, searchWordCharsMax, searchKeywordCharsMax } = SEARCH_LIMITS
  t.equal(wordsOf('ab '.repeat(2 * searchWordsMax)).length, searchWordsMax)
  t.equal(wordsOf('é'.repeat(1_000))[0]!.length, searchWordCharsMax)
  t.equal(wordsOf('a'.repeat(63) + '𝒳𝒳'.repeat(9))[0]!.length, searchWordCharsMax)
  t.equal(keywordOf('é'.repeat(1_000))!.length, searchKeywordCharsMax + 1)
  t.ok(wordsOf('a b'.repeat(1_000_000)).length <= searchWordsMax)
})
