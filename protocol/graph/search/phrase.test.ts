// The grammar of phrases, where it is wrong, and that what attacks it is refused at once. Source:
// CONTRACT 1.4.2.

import t from 'tap'
import { SyntaxMistake } from '../filter/lexer.ts'
import { parsePhrase, phraseText } from './phrase.ts'

const words = (phrase: string): unknown =>
  parsePhrase(phrase).terms.map((term) => term.words.join(' ') + (term.prefix ? '*' : ''))

t.test('words, beginnings and quotes', async (t) => {
  for (const [phrase, terms] of [
    ['white  heart', ['white', 'heart']],
    ['whit* heart', ['whit*', 'heart']],
    ['"white heart" mug', ['white heart', 'mug']],
    ["'white heart'* mug", ['white heart*', 'mug']],
    ["'O'Brien' x-ray", ['obrien', 'x ray']],
    ['"say \'it\'"', ['say it']],
    ['it"s white', ['it s', 'white']],
    ['a of', ['', '']],
    ['"*white*"', ['white']],
    ['white**', ['white*']],
    ["'s-Hertogenbosch", ['s hertogenbosch']],
    ["'t Hof", ['hof']],
    ["café 't Hof*", ['cafe', 'hof*']],
    ["'t Hof' café", ['t hof', 'cafe']],
    ["rock 'n' roll", ['rock', 'n', 'roll']],
    ["d'Artagnan l\u2019Oréal O\uff07Brien", ['dartagnan', 'loreal', 'obrien']],
    ['"Al\u00adbum"\u200c* \u2060 white', ['album*', 'white']],
    ['\ufeff\u200bwhite \u00ad', ['white']],
  ] as const) {
    t.same(words(phrase), terms, phrase)
  }
  t.same(parsePhrase('set of 3').sequence?.words, ['set', 'of', '3'], 'one after another')
  t.equal(parsePhrase('set of mu*').sequence, null)
  t.equal(parsePhrase('"set of 3"').sequence, null)
})

t.test('a phrase is told as it was understood', async (t) => {
  for (const [phrase, told] of [
    ['White  mug*', 'white mug*'],
    ["'white heart'* x-ray", '"white heart"* "x ray"'],
    ['SO', '"so" (as a keyword)'],
    ['- b*', '"-" (as a keyword) "b"* (as a keyword)'],
  ] as const) {
    t.equal(phraseText(parsePhrase(phrase)), told, phrase)
  }
})

t.test('mistakes say where', async (t) => {
  const mistake = (phrase: string): string => {
    try {
      parsePhrase(phrase)
    } catch (error) {
      if (error instanceof SyntaxMistake) return `${error.position}: ${error.message}`
    }
    return 'none'
  }
  t.match(mistake(''), /^0: the phrase is empty/)
  t.match(mistake(' \n '), /^0: the phrase is empty/)
  t.match(mistake('white "heart'), /^6: the quote .* no closing "/)
  t.match(mistake('whi\u00adte \u00ad"heart'), /^8: the quote/)
  t.match(mistake('\u00ad '), /the phrase is empty/)
  t.match(mistake("white ''"), /^6: there is nothing in quotes/)
  t.match(mistake('white ""'), /^6: there is nothing in quotes/)
  t.match(mistake('white *'), /^6: a \* stands behind/)
  t.match(mistake('a '.repeat(17)), /^32: a phrase has at most 16 words/)
  t.match(mistake('王'.repeat(101)), /^0: a phrase is cut into at most 100/)
  for (const flood of ['a', '* ', "'", '"', 'a* ', "'a", '王', ' ', "a'", '\u00ad', '\u00ad"']) {
    // What is longer is looked at no further, whatever else is wrong with it.
    t.equal(mistake(flood.repeat(1_000_000)), '500: a phrase has at most 500 characters', flood)
    const fits = flood.repeat(500 / flood.length)
    t.not(mistake(fits), '500: a phrase has at most 500 characters', flood)
  }
})
