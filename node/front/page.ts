// The page that a browser gets at the root of a node: one text, without a build, a script or
// anything from elsewhere.

import { createHash } from 'node:crypto'
import type { Settings } from '../../config/settings.ts'

/** What a node tells of itself. */
export interface Front {
  readonly name: 'Kontor'
  readonly version: string
  readonly storage: Settings['storageDriver']
  readonly ready: boolean
  /** Why it isn't ready. */
  readonly reasons?: readonly string[]
  /** Absent: not for this caller, or not known now. */
  readonly orders?: number
  readonly links: Readonly<Record<string, string>>
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --paper: #fff; --edge: #dde2e8;
  --block: #f5f7f9; --link: #0b5fc0; --good: #16793c; --bad: #b3261e }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #9aa6b5; --paper: #14181e;
  --edge: #2c343e; --block: #1c222a; --link: #79b4ff; --good: #5fd38a; --bad: #ff8a80 } }
* { box-sizing: border-box }
body { margin: 0; padding: 3rem 1.25rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif }
main { max-width: 46rem; margin: 0 auto }
h1 { margin: 0; font-size: 2rem; letter-spacing: -.02em }
h1 small { color: var(--soft); font-size: 1rem; font-weight: 400; letter-spacing: 0 }
h2 { margin: 2.25rem 0 .5rem; font-size: 1.1rem }
p { margin: .5rem 0 } p.soft { color: var(--soft) }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .4rem 1.5rem; margin: 1.5rem 0 0;
  padding: 1rem 1.25rem; border: 1px solid var(--edge); border-radius: .6rem }
dt { color: var(--soft) } dd { margin: 0; overflow-wrap: anywhere }
.good { color: var(--good); font-weight: 600 } .bad { color: var(--bad); font-weight: 600 }
ul { margin: .5rem 0; padding-left: 1.2rem }
a { color: var(--link) }
pre { margin: .75rem 0; padding: 1rem 1.25rem; overflow-x: auto; background: var(--block);
  border: 1px solid var(--edge); border-radius: .6rem; font: .82rem/1.6 ui-monospace, monospace }
`
const HASH = createHash('sha256').update(STYLE).digest('base64')

/** Nothing is loaded and nothing runs, whatever comes to stand in the page. */
export const PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy':
    `default-src 'none'; style-src 'sha256-${HASH}'; img-src data:; base-uri 'none'; ` +
    `form-action 'none'; frame-ancestors 'none'`,
} as const

const ICON =
  'data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 viewBox=%220 0 16 16%22%3E' +
  '%3Crect width=%2216%22 height=%2216%22 rx=%223%22 fill=%22%230b5fc0%22/%3E' +
  '%3Cpath d=%22M5 3v10M11 3 6 8l5 5%22 fill=%22none%22 stroke=%22white%22 stroke-width=%222%22/%3E' +
  '%3C/svg%3E'

const PLACES: readonly (readonly [path: keyof Front['links'], what: string])[] = [
  ['watch', 'orders as they change'],
  ['graphiql', 'a page to try GraphQL in'],
  ['openapi', 'every operation'],
  ['ready', 'whether it serves, and why not'],
  ['live', 'whether the process runs'],
  ['metrics', 'its numbers, for Prometheus'],
]

/** The page. `first`: lines for a shell. */
export function pageOf(front: Front, first: string): string {
  const { version, storage, links } = front
  const kind = storage === 'embedded' ? 'One process with its own store' : 'A member of a cluster'
  const places = PLACES.filter(([name]) => name in links).map(
    ([name, what]) => `<li><a href="${links[name]}">${links[name]}</a> ${what}</li>`,
  )
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Kontor</title>
<link rel="icon" href="${ICON}">
<style>${STYLE}</style>
<main>
<h1>Kontor <small>${escaped(version)}</small></h1>
<p class="soft">Order and commerce processing</p>
<dl>
<dt>State</dt><dd>${state(front)}</dd>
<dt>Runs as</dt><dd>${kind}</dd>
<dt>Orders</dt><dd>${numberOfOrders(front)}</dd>
</dl>
<h2>Where to look</h2>
<ul>
${places.join('\n')}
</ul>
<h2>The first request</h2>
<p>In a shell: a token for the first client, then the newest orders.</p>
<pre>${escaped(first)}</pre>
</main>
</html>
`
}

function state({ ready, reasons = [] }: Front): string {
  if (ready) return '<span class="good">Ready</span>'
  return `<span class="bad">Not ready</span>: ${reasons.map(escaped).join('; ')}`
}

function numberOfOrders({ orders, ready }: Front): string {
  if (orders !== undefined) return orders.toLocaleString('en')
  return ready ? 'shown to callers whose token may query orders' : 'not known now'
}

function escaped(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
