// GraphiQL as static files: its own of the packages, read when first asked for and sent by this
// node alone. A page without a token shows nothing of the business. Source: CONTRACT 1.4.1.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { RequestError } from '../../../protocol/errors.ts'
import type { Operation, OperationResponse } from '../../http/operation.ts'

const PATH = '/graphiql'

/** React sets styles of elements as a script does; what is written into the page is refused. */
const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    `default-src 'none'; script-src 'self'; style-src 'self'; font-src data:; ` +
    `img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; ` +
    `frame-ancestors 'none'`,
  'Referrer-Policy': 'no-referrer',
} as const

const PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>GraphiQL - Kontor</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${PATH}/graphiql.css">
<link rel="stylesheet" href="${PATH}/page.css">
<form id="sign-in" aria-label="Sign in">
<h1>GraphiQL</h1>
<p>Sign in with a client, or paste a token. Neither is kept when this page is closed.</p>
<label>Client <input name="client" autocomplete="username"></label>
<label>Secret <input name="secret" type="password" autocomplete="current-password"></label>
<label>or token <input name="token" type="password" autocomplete="off"></label>
<p id="refusal" role="alert"></p>
<button>Go on</button>
</form>
<div id="graphiql" hidden></div>
<script src="${PATH}/react.js" defer></script>
<script src="${PATH}/react-dom.js" defer></script>
<script src="${PATH}/graphiql.js" defer></script>
<script src="${PATH}/graphql-ws.js" defer></script>
<script src="${PATH}/page.js" defer></script>
</html>
`

const JAVASCRIPT = 'text/javascript; charset=utf-8'
const CSS = 'text/css; charset=utf-8'

/** What the page loads: `package` is null for our own, beside this file. */
const FILES: Readonly<
  Record<string, { readonly type: string; readonly package: string | null; readonly path: string }>
> = {
  'react.js': { type: JAVASCRIPT, package: 'react', path: 'umd/react.production.min.js' },
  'react-dom.js': {
    type: JAVASCRIPT,
    package: 'react-dom',
    path: 'umd/react-dom.production.min.js',
  },
  'graphiql.js': { type: JAVASCRIPT, package: 'graphiql', path: 'graphiql.min.js' },
  'graphiql.css': { type: CSS, package: 'graphiql', path: 'graphiql.min.css' },
  'graphql-ws.js': { type: JAVASCRIPT, package: 'graphql-ws', path: 'umd/graphql-ws.min.js' },
  'page.js': { type: JAVASCRIPT, package: null, path: 'page/page.js' },
  'page.css': { type: CSS, package: null, path: 'page/page.css' },
}

export function graphiqlOperations(): Operation[] {
  const known = new Map<string, Promise<OperationResponse>>()
  return [
    {
      method: 'GET',
      path: PATH,
      summary: 'GraphiQL, a page to try GraphQL in; it asks for a token',
      access: 'none',
      handle: () => ({ status: 200, headers: HEADERS, raw: PAGE }),
    },
    {
      method: 'GET',
      path: `${PATH}/{file}`,
      summary: 'A file of that page',
      access: 'none',
      handle: ({ params }) => {
        const name = params['file']!
        if (!Object.hasOwn(FILES, name)) {
          throw new RequestError('NOT_FOUND', 'the page has no such file')
        }
        const answer = known.get(name) ?? read(FILES[name]!)
        known.set(name, answer)
        return answer
      },
    },
  ]
}

async function read(file: (typeof FILES)[string]): Promise<OperationResponse> {
  const raw = await readFile(locate(file))
  return { status: 200, headers: { 'Content-Type': file.type, 'Cache-Control': 'no-cache' }, raw }
}

function locate({ package: name, path }: (typeof FILES)[string]): string | URL {
  if (name === null) return new URL(path, import.meta.url)
  const require = createRequire(import.meta.url)
  return join(dirname(require.resolve(`${name}/package.json`)), path)
}
