// What all pages of signing in have in common: one text without a script, a font or anything from
// elsewhere, that fits a telephone and the dark. Whatever is put into it is escaped here. Source:
// CONTRACT 1.11 "Pages", RFC 9700 4.16, RFC 6749 10.13.

import { createHash } from 'node:crypto'
import type { OperationResponse } from '../../../http/operation.ts'

/** Text of a page that is markup already: only `html` makes it. */
export class Markup {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

type Part = string | number | Markup | readonly Markup[] | null

/** A template whose values are escaped, but for what is markup already; null is nothing. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  let text = texts[0]!
  for (const [i, part] of parts.entries()) text += textOf(part) + texts[i + 1]!
  return new Markup(text)
}

function textOf(part: Part): string {
  if (part === null) return ''
  if (part instanceof Markup) return part.text
  if (typeof part === 'object') return part.map(({ text }) => text).join('')
  return escaped(String(part))
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Also without what turns the direction of a text: a name must not look like another. */
function escaped(text: string): string {
  return (
    text
      // oxlint-disable-next-line no-control-regex -- control characters are what is taken out
      .replaceAll(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, '\ufffd')
      .replaceAll(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, '')
      .replaceAll(/[&<>"']/g, (character) => ENTITIES[character]!)
  )
}

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2430; --soft: #566170; --paper: #f4f6f8; --card: #fff;
  --edge: #d5dbe2; --field: #8a95a3; --act: #0b5fc0; --on-act: #fff; --bad: #b3261e; --tint: #fdf1f0 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6eaf0; --soft: #a3aebc; --paper: #101419;
  --card: #181d24; --edge: #2f3843; --field: #6d7988; --act: #79b4ff; --on-act: #0b1a2c;
  --bad: #ff9a91; --tint: #2b1a1a } }
* { box-sizing: border-box }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; padding: 1.5rem 1rem;
  background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif }
main { width: 100%; max-width: 26rem; padding: 2rem 1.75rem; background: var(--card);
  border: 1px solid var(--edge); border-radius: .75rem }
.brand { margin: 0 0 1.25rem; color: var(--soft); font-size: .9rem; font-weight: 600 }
h1 { margin: 0 0 .5rem; font-size: 1.4rem; line-height: 1.25; overflow-wrap: anywhere }
p { margin: .5rem 0; overflow-wrap: anywhere }
.soft { color: var(--soft); font-size: .9rem }
.error { margin: 1rem 0; padding: .7rem .9rem; color: var(--bad); background: var(--tint);
  border: 1px solid currentColor; border-radius: .5rem }
label { display: block; margin: 1rem 0 .3rem; font-weight: 600 }
input { width: 100%; padding: .6rem .7rem; color: inherit; background: transparent; font: inherit;
  border: 1px solid var(--field); border-radius: .5rem }
input[readonly] { color: var(--soft); border-style: dashed }
input[aria-invalid] { border-color: var(--bad) }
.hint { margin: .3rem 0 0; color: var(--soft); font-size: .85rem }
ul { margin: 1rem 0; padding: 0 0 0 1.2rem; max-height: 18rem; overflow-y: auto }
li { margin: .3rem 0; overflow-wrap: anywhere }
code { color: var(--soft); font: .8rem ui-monospace, monospace }
button { width: 100%; margin: 1rem 0 0; padding: .65rem 1rem; font: inherit; font-weight: 600;
  cursor: pointer; border: 1px solid var(--act); border-radius: .5rem; background: var(--act);
  color: var(--on-act) }
button.second { margin-top: .6rem; background: transparent; color: var(--act) }
button.plain { width: auto; margin: 0; padding: 0; border: 0; background: none; color: var(--act);
  font-weight: 400; text-decoration: underline }
:focus-visible { outline: 3px solid var(--act); outline-offset: 2px }
`
const HASH = createHash('sha256').update(STYLE).digest('base64')

/**
 * What a form may lead to, for the policy of its page: browsers hold a redirect behind a form to
 * it, and those that the application or the provider answers with, too. So it names schemes, not
 * hosts.
 */
export function formTargets(...uris: readonly string[]): string {
  const schemes = uris.map((uri) => /^[a-z][a-z0-9+.-]*:/i.exec(uri)![0].toLowerCase())
  return ["'self'", ...new Set(['https:', ...schemes])].join(' ')
}

export interface PageOptions {
  readonly status?: number
  readonly title: string
  readonly content: Markup
  /** Where its forms may lead (`formTargets`); absent: it has none. */
  readonly targets?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The answer that shows a page. Nothing runs in it, frames it, or is told where it was. */
export function pageAnswer(options: PageOptions): OperationResponse {
  const { status = 200, title, content, targets = "'none'", headers } = options
  const policy = [
    "default-src 'none'",
    `style-src 'sha256-${HASH}'`,
    "base-uri 'none'",
    `form-action ${targets}`,
    "frame-ancestors 'none'",
  ]
  return {
    status,
    headers: {
      ...PAGE_HEADERS,
      'Content-Security-Policy': policy.join('; '),
      ...headers,
    },
    raw: html`<!doctype html>
      <html lang="en">
        <head>
          <meta charset="utf-8" />
          <meta name="viewport" content="width=device-width, initial-scale=1" />
          <meta name="robots" content="noindex" />
          <title>${title} · Kontor</title>
          ${new Markup(`<style>${STYLE}</style>`)}
        </head>
        <body>
          <main>
            <p class="brand">Kontor</p>
            ${content}
          </main>
        </body>
      </html> `.text,
  }
}

/** Of a redirect as well: what it carries is for one reader. */
export const SECRET_HEADERS = {
  'Cache-Control': 'no-store',
  Pragma: 'no-cache',
} as const

const PAGE_HEADERS = {
  ...SECRET_HEADERS,
  'Content-Type': 'text/html; charset=utf-8',
  'X-Frame-Options': 'DENY',
} as const
