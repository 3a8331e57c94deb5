// The routing tree against a plain list of patterns, and its corners by hand.

import fc from 'fast-check'
import t from 'tap'
import { Router } from './router.ts'

function routerOf(...routes: string[]): Router<string> {
  const router = new Router<string>()
  for (const route of routes) {
    const [method = '', path = ''] = route.split(' ')
    router.add(method, path, route)
  }
  return router
}

const targetOf = (router: Router<string>, method: string, path: string): string | null =>
  router.find(method, path)?.target ?? null

t.test('static beats parameter beats rest, and values come in order', (t) => {
  const router = routerOf('GET /a/{x}', 'GET /a/b', 'GET /a/{**rest}', 'GET /a/{x}/c/{y}', 'GET /')
  t.equal(targetOf(router, 'GET', '/a/b'), 'GET /a/b')
  t.same(router.find('GET', '/a/z'), { target: 'GET /a/{x}', names: ['x'], values: ['z'] })
  t.same(router.find('GET', '/a/1/c/2'), {
    target: 'GET /a/{x}/c/{y}',
    names: ['x', 'y'],
    values: ['1', '2'],
  })
  t.same(router.find('GET', '/a/1/d/2'), {
    target: 'GET /a/{**rest}',
    names: ['rest'],
    values: ['1/d/2'],
  })
  t.same(router.find('GET', '/a/')?.values, [''], 'a rest may be empty after its slash')
  t.equal(targetOf(router, 'GET', '/a'), null)
  t.equal(targetOf(router, 'GET', '/'), 'GET /')
  t.equal(targetOf(router, 'GET', '/A/b'), null, 'case matters')
  t.equal(targetOf(router, 'GET', ''), null)
  t.end()
})

t.test('a more general path serves a method that the special one lacks', (t) => {
  const router = routerOf('GET /jobs/statistics', 'DELETE /jobs/{id}', 'PUT /jobs/{**any}')
  t.equal(targetOf(router, 'GET', '/jobs/statistics'), 'GET /jobs/statistics')
  t.same(router.find('DELETE', '/jobs/statistics')?.values, ['statistics'])
  t.equal(targetOf(router, 'PUT', '/jobs/statistics'), 'PUT /jobs/{**any}')
  t.equal(targetOf(router, 'PATCH', '/jobs/statistics'), null)
  t.same(router.methodsOf('/jobs/statistics'), ['DELETE', 'GET', 'PUT'])
  t.same(router.methodsOf('/jobs/1/2'), ['PUT'])
  t.same(router.methodsOf('/other'), [])
  t.end()
})

t.test('a table with a mistake is refused at once', (t) => {
  t.throws(() => routerOf('GET /a/{x}', 'GET /a/{y}'), /declared once/)
  t.throws(() => routerOf('GET /a', 'GET /a'), /declared once/)
  t.throws(() => routerOf('GET /a/{**x}/b'), /ends the path/)
  t.throws(() => routerOf('GET /a/x{y}'), /no parameter/)
  t.throws(() => routerOf('GET a'), /starts with a slash/)
  t.end()
})

t.test('any table agrees with trying its patterns one by one', (t) => {
  const segment = fc.constantFrom('a', 'b', '{p}')
  const tail = fc.constantFrom('', '/{**r}')
  const path = fc.tuple(fc.array(segment, { minLength: 1, maxLength: 3 }), tail)
  const table = fc.uniqueArray(
    path.map(([segments, rest]) => {
      let n = 0
      return `/${segments.map((s) => (s === '{p}' ? `{p${n++}}` : s)).join('/')}${rest}`
    }),
    { maxLength: 8 },
  )
  const asked = fc.array(fc.constantFrom('a', 'b', 'c', ''), { minLength: 1, maxLength: 4 })
  const matches = (pattern: string, wanted: string): boolean =>
    new RegExp(`^${pattern.replace(/\{\*\*r\}/, '.*').replaceAll(/\{p[0-9]\}/g, '[^/]+')}$`).test(
      wanted,
    )
  let hits = 0
  fc.assert(
    fc.property(table, asked, (patterns, parts) => {
      const router = routerOf(...patterns.map((pattern) => `GET ${pattern}`))
      const wanted = `/${parts.join('/')}`
      const target = targetOf(router, 'GET', wanted)?.slice(4) ?? null
      const fitting = patterns.filter((pattern) => matches(pattern, wanted))
      if ((target === null) !== (fitting.length === 0)) throw new Error(`${wanted}: ${target}`)
      if (target === null) return
      hits++
      if (!fitting.includes(target)) throw new Error(`${target} doesn't fit ${wanted}`)
      if (patterns.includes(wanted) && target !== wanted) throw new Error('static goes first')
    }),
    { numRuns: 2000 },
  )
  t.ok(hits > 200)
  t.end()
})
