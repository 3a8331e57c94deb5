// Bounds of JSON inside commands: depth, size, numbers, keys.

import t from 'tap'
import { LIMITS } from '../../config/limits.ts'
import { jsonProblem } from './json.ts'

const nested = (depth: number): unknown =>
  depth === 0 ? 1 : depth % 2 === 0 ? [nested(depth - 1)] : { a: nested(depth - 1) }

t.test('plain JSON is fine', (t) => {
  for (const value of [null, 0, '', false, [], {}, { a: [1, { b: 'c' }] }]) {
    t.equal(jsonProblem(value), null)
  }
  t.end()
})

t.test('depth is bounded', (t) => {
  t.equal(jsonProblem(nested(LIMITS.protocol.jsonDepthMax)), null)
  t.equal(jsonProblem(nested(LIMITS.protocol.jsonDepthMax + 1)), 'is nested deeper than 64 levels')
  t.end()
})

t.test('size is bounded, wherever it is spent', (t) => {
  const max = LIMITS.commerce.dynamicCharsMax
  const message = `is longer than ${max} characters`
  t.equal(jsonProblem({ a: 'x'.repeat(max - 10) }), null)
  t.equal(jsonProblem({ a: 'x'.repeat(max) }), message)
  t.equal(jsonProblem({ ['x'.repeat(max)]: null }), message)
  t.equal(jsonProblem(Array.from({ length: max }, () => null)), message)
  t.equal(jsonProblem(Array.from({ length: max / 3 }, () => [])), message)
  t.equal(jsonProblem(Array.from({ length: max / 2 }, () => true)), message)
  t.end()
})

t.test('keys that reach a prototype are refused, at any depth', (t) => {
  for (const key of ['__proto__', 'constructor', 'prototype']) {
    const value: unknown = JSON.parse(`{"a":[{"${key}":{"polluted":true}}]}`)
    t.equal(jsonProblem(value), `has a member ${key}, which is not allowed`)
  }
  t.end()
})

t.test('numbers that JSON has not are refused', (t) => {
  t.equal(jsonProblem([Infinity]), 'holds a number out of range')
  t.equal(jsonProblem(Number.NaN), 'holds a number out of range')
  t.match(jsonProblem({ a: undefined }), /undefined/)
  t.end()
})
