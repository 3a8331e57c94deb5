// Random filters for the graph index's conformance suite, each with its meaning as a plain
// function: what the language promises, said once more without parser, plan or index. It stands
// beside the suite. Source: CONTRACT Appendix A.

import fc from 'fast-check'
import type { NodeType } from '../../protocol/graph/node-type.ts'
import { MEMBERS, type Doc } from './search-nodes.ts'
import {
  NOW,
  type Term,
  isMissing,
  memberOf,
  quote,
  textLiteral,
  numberLiteral,
  booleanLiteral,
  type Literal,
  termsOf,
  literalsOf,
  OPERATORS,
  compare,
  equality,
} from './search-terms.ts'

export interface RandomFilter {
  readonly text: string
  readonly holds: (doc: Doc) => boolean
}

/** Comparisons of a term with a constant of its kind. */
function withConstant(term: Term): fc.Arbitrary<RandomFilter> {
  const kinds = term.kind === 'member' ? ['text', 'number', 'boolean', 'instant'] : [term.kind]
  return fc
    .record({
      kind: fc.constantFrom(...kinds),
      operator: fc.constantFrom(...OPERATORS),
      mirrored: fc.boolean(),
    })
    .chain(({ kind, operator, mirrored }) =>
      literalsOf(term, kind).map(({ text, value: own }) => {
        // Beside a member of dynamic a quoted moment is the text that it is.
        const isText = term.kind === 'member' && kind === 'instant' && text.startsWith("'")
        const value = isText ? text.slice(1, -1) : own
        const word = kind === 'boolean' && operator.length === 1 ? '==' : equality(kind, operator)
        return mirrored
          ? {
              text: `${text} ${word} ${term.text}`,
              holds: (doc: Doc) => compare(word, value, term.of(doc)),
            }
          : {
              text: `${term.text} ${word} ${text}`,
              holds: (doc: Doc) => compare(word, term.of(doc), value),
            }
      }),
    )
}

/** Comparisons of two terms of one kind. */
function withTerm(term: Term, terms: readonly Term[]): fc.Arbitrary<RandomFilter> {
  const same = terms.filter((other) => other.kind === term.kind)
  return fc
    .record({ other: fc.constantFrom(...same), operator: fc.constantFrom(...OPERATORS) })
    .map(({ other, operator }) => {
      const word = equality(
        term.kind,
        term.kind === 'boolean' && operator.length === 1 ? '==' : operator,
      )
      return {
        text: `${term.text} ${word} ${other.text}`,
        holds: (doc) => compare(word, term.of(doc), other.of(doc)),
      }
    })
}

function nothing(term: Term): fc.Arbitrary<RandomFilter> {
  return fc.constantFrom(
    { text: `${term.text} == nothing`, holds: (doc: Doc) => isMissing(term.of(doc)) },
    { text: `null != ${term.text}`, holds: (doc: Doc) => !isMissing(term.of(doc)) },
  )
}

function inList(term: Term): fc.Arbitrary<RandomFilter> {
  const kinds = term.kind === 'member' ? ['text', 'number', 'boolean'] : [term.kind]
  // `now` is no literal of a list.
  const literal = fc
    .constantFrom(...kinds)
    .chain((kind) => literalsOf(term, kind))
    .filter(({ text }) => !text.includes('now ') && text !== 'now')
  return fc
    .record({ values: fc.array(literal, { maxLength: 20 }), nothing: fc.boolean() })
    .map(({ values, nothing: orMissing }) => {
      const texts = values.map(({ text }) => text)
      return {
        text: `${term.text} in [${(orMissing ? [...texts, 'nothing'] : texts).join(', ')}]`,
        holds: (doc) => {
          const value = term.of(doc)
          if (isMissing(value)) return orMissing
          return values.some((one) => compare('==', value, one.value))
        },
      }
    })
}

function textTest(term: Term): fc.Arbitrary<RandomFilter> {
  const tests = {
    contains: (a: string, b: string) => a.includes(b),
    startsWith: (a: string, b: string) => a.startsWith(b),
    endsWith: (a: string, b: string) => a.endsWith(b),
  }
  return fc
    .record({
      operator: fc.constantFrom('contains' as const, 'startsWith' as const, 'endsWith' as const),
      literal: textLiteral,
    })
    .map(({ operator, literal }) => ({
      text: `${term.text} ${operator} ${literal.text}`,
      holds: (doc) => {
        const value = term.of(doc)
        return typeof value === 'string' && tests[operator](value, literal.value)
      },
    }))
}

function sum(term: Term, terms: readonly Term[]): fc.Arbitrary<RandomFilter> {
  const numbers = terms.filter((other) => other.kind === 'number')
  return fc
    .record({
      other: fc.constantFrom(...numbers),
      minus: fc.boolean(),
      literal: numberLiteral,
      operator: fc.constantFrom(...OPERATORS),
    })
    .map(({ other, minus, literal, operator }) => ({
      text: `${term.text} ${minus ? '-' : '+'} ${other.text} ${operator} ${literal.text}`,
      holds: (doc) => {
        const [a, b] = [term.of(doc), other.of(doc)]
        if (typeof a !== 'number' || typeof b !== 'number') return false
        return compare(operator, minus ? a - b : a + b, literal.value)
      },
    }))
}

const DAY = 86_400_000

/** Fields moved by durations, and spans between two fields. */
function moved(term: Term, terms: readonly Term[]): fc.Arbitrary<RandomFilter> {
  const others = terms.filter((other) => other.kind === 'instant')
  const ms = (value: unknown): number => (isMissing(value) ? Number.NaN : Date.parse(String(value)))
  return fc
    .record({
      other: fc.constantFrom(...others),
      days: fc.integer({ min: 0, max: 60 }),
      operator: fc.constantFrom(...OPERATORS),
      form: fc.constantFrom('constant', 'term', 'span'),
    })
    .map(({ other, days, operator, form }): RandomFilter => {
      const both = (doc: Doc, test: (a: number, b: number) => boolean): boolean => {
        const [a, b] = [ms(term.of(doc)), ms(other.of(doc))]
        return !Number.isNaN(a) && !Number.isNaN(b) && test(a, b)
      }
      if (form === 'constant') {
        return {
          text: `${term.text} + ${days} days ${operator} now`,
          holds: (doc) => {
            const a = ms(term.of(doc))
            return !Number.isNaN(a) && compare(operator, a + days * DAY, NOW)
          },
        }
      }
      if (form === 'term') {
        return {
          text: `${term.text} - ${days} days ${operator} ${other.text}`,
          holds: (doc) => both(doc, (a, b) => compare(operator, a - days * DAY, b)),
        }
      }
      return {
        text: `${term.text} - ${other.text} ${operator} ${days} days`,
        holds: (doc) => both(doc, (a, b) => compare(operator, a - b, days * DAY)),
      }
    })
}

/** Dates against instants: a date is its midnight. */
function midnight(term: Term, terms: readonly Term[]): fc.Arbitrary<RandomFilter> {
  const instants = terms.filter((other) => other.kind === 'instant')
  return fc
    .record({ other: fc.constantFrom(...instants), operator: fc.constantFrom(...OPERATORS) })
    .chain(({ other, operator }) => {
      const of = (doc: Doc): unknown => {
        const date = term.of(doc)
        return isMissing(date) ? date : `${String(date)}T00:00:00.000Z`
      }
      return fc.constantFrom<RandomFilter>(
        {
          text: `${term.text} ${operator} ${other.text}`,
          holds: (doc) => compare(operator, of(doc), other.of(doc)),
        },
        {
          text: `${term.text} ${operator} now - 31 days`,
          holds: (doc) => compare(operator, of(doc), '2026-01-01T00:00:00.000Z'),
        },
      )
    })
}

/** anyof and allof on lists of text and on members that may be lists. */
function listTests(type: NodeType): fc.Arbitrary<RandomFilter>[] {
  const paths: { text: string; path: string[]; isText: boolean }[] = []
  for (const { name, type: fieldType } of type.fields) {
    if (fieldType === '[text]') paths.push({ text: name, path: [name], isText: true })
    if (fieldType !== 'dynamic') continue
    for (const member of MEMBERS.slice(0, 3)) {
      paths.push({ text: `${name}->${quote(member)}`, path: [name, member], isText: false })
    }
  }
  return paths.map(({ text, path, isText }) => {
    const literal: fc.Arbitrary<Literal> = isText
      ? textLiteral
      : fc.oneof(textLiteral, numberLiteral, booleanLiteral)
    return fc
      .record({ all: fc.boolean(), values: fc.array(literal, { maxLength: 3 }) })
      .map(({ all, values }) => ({
        text: `${text} ${all ? 'allof' : 'anyof'} [${values.map((v) => v.text).join(',')}]`,
        holds: (doc) => {
          const list = memberOf(doc, path)
          if (!Array.isArray(list)) return false
          const has = ({ value }: Literal): boolean => list.includes(value)
          return all ? values.every(has) : values.some(has)
        },
      }))
  })
}

function truth(term: Term): fc.Arbitrary<RandomFilter> {
  return fc.constantFrom<RandomFilter>(
    { text: term.text, holds: (doc) => term.of(doc) === true },
    {
      text: `(${term.text} == true) == false`,
      holds: (doc) => term.of(doc) !== true,
    },
  )
}

function simpleFilters(type: NodeType): fc.Arbitrary<RandomFilter> {
  const terms = termsOf(type)
  const has = (kind: Term['kind']): boolean => terms.some((term) => term.kind === kind)
  const all = terms.flatMap((term) => {
    const filters = [withConstant(term), withTerm(term, terms), nothing(term), inList(term)]
    if (term.kind === 'text' || term.kind === 'member') filters.push(textTest(term))
    if (term.kind === 'number' || (term.kind === 'member' && has('number'))) {
      filters.push(sum(term, terms))
    }
    if (term.kind === 'instant') filters.push(moved(term, terms))
    if (term.kind === 'date' && has('instant')) filters.push(midnight(term, terms))
    if (term.kind === 'boolean' || term.kind === 'member') filters.push(truth(term))
    return filters
  })
  return fc.oneof(...all, ...listTests(type))
}

/** What a document holds, each as a filter that it meets. */
export function filtersMeeting(type: NodeType, doc: Doc): RandomFilter[] {
  return termsOf(type).flatMap(({ text, of }) => {
    const value = of(doc)
    if (isMissing(value) || typeof value === 'object') return []
    const literal = typeof value === 'string' ? quote(value) : JSON.stringify(value)
    return [{ text: `${text} == ${literal}`, holds: (other) => compare('==', of(other), value) }]
  })
}

const made = new Map<NodeType, fc.Arbitrary<RandomFilter>>()

/** Filters over nodes of a type, with and, or, not and parentheses. */
export function randomFilter(type: NodeType): fc.Arbitrary<RandomFilter> {
  const known = made.get(type)
  if (known !== undefined) return known
  const simple = simpleFilters(type)
  const { filter } = fc.letrec<{ filter: RandomFilter }>((tie) => ({
    filter: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      { weight: 4, arbitrary: simple },
      { weight: 1, arbitrary: tie('filter').map(negated) },
      { weight: 2, arbitrary: fc.tuple(tie('filter'), tie('filter')).map(conjoined) },
      { weight: 2, arbitrary: fc.tuple(tie('filter'), tie('filter')).map(disjoined) },
    ),
  }))
  made.set(type, filter)
  return filter
}

const negated = (one: RandomFilter): RandomFilter => ({
  text: `not (${one.text})`,
  holds: (doc) => !one.holds(doc),
})

const conjoined = ([a, b]: [RandomFilter, RandomFilter]): RandomFilter => ({
  text: `(${a.text}) and (${b.text})`,
  holds: (doc) => a.holds(doc) && b.holds(doc),
})

const disjoined = ([a, b]: [RandomFilter, RandomFilter]): RandomFilter => ({
  text: `(${a.text} or ${b.text})`,
  holds: (doc) => a.holds(doc) || b.holds(doc),
})
