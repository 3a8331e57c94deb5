// GraphiQL as static files: its own of the packages, sent by this node alone. A page without a
// token shows nothing of the business. Source: CONTRACT 1.4.1.

import { CSS, JAVASCRIPT, pageOperations } from '../../static-page.ts'
import type { Operation } from '../../http/operation.ts'

const PATH = '/graphiql'

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
<script src="${PATH}/page.js" type="module"></script>
</html>
`

const page = (name: string) => new URL(`page/${name}`, import.meta.url)

export function graphiqlOperations(): Operation[] {
  return pageOperations({
    path: PATH,
    summary: 'GraphiQL, a page to try GraphQL in; it asks for a token',
    html: PAGE,
    policy: { 'font-src': 'data:', 'img-src': "'self' data:" },
    files: {
      'react.js': { type: JAVASCRIPT, package: 'react', path: 'umd/react.production.min.js' },
      'react-dom.js': {
        type: JAVASCRIPT,
        package: 'react-dom',
        path: 'umd/react-dom.production.min.js',
      },
      'graphiql.js': { type: JAVASCRIPT, package: 'graphiql', path: 'graphiql.min.js' },
      'graphiql.css': { type: CSS, package: 'graphiql', path: 'graphiql.min.css' },
      'graphql-ws.js': { type: JAVASCRIPT, package: 'graphql-ws', path: 'umd/graphql-ws.min.js' },
      'page.js': { type: JAVASCRIPT, place: page('page.js') },
      'page.css': { type: CSS, place: page('page.css') },
    },
  })
}
