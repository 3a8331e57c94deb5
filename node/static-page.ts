// A page that a browser gets as files of this node, without a build: the text of the page itself,
// and what it loads, read when it is first asked for. Nothing comes from elsewhere.

import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { RequestError } from '../protocol/errors.ts'
import type { Operation, OperationResponse } from './http/operation.ts'

/** A file of the page: of a package by its path there, or our own by its place. */
export type PageFile =
  | { readonly type: string; readonly package: string; readonly path: string }
  | { readonly type: string; readonly place: URL }

export interface StaticPage {
  readonly path: string
  readonly summary: string
  readonly html: string
  /** Directives besides those that all pages have, and in their place. */
  readonly policy?: Readonly<Record<string, string>>
  /** By their names below `path`. */
  readonly files: Readonly<Record<string, PageFile>>
}

export const JAVASCRIPT = 'text/javascript; charset=utf-8'
export const CSS = 'text/css; charset=utf-8'

/** What is written into the page is refused: it loads its own files and asks its own node. */
const POLICY = {
  'default-src': "'none'",
  'script-src': "'self'",
  'style-src': "'self'",
  'img-src': 'data:',
  'connect-src': "'self'",
  'base-uri': "'none'",
  'form-action': "'none'",
  'frame-ancestors': "'none'",
} as const

export function pageOperations({ path, summary, html, policy, files }: StaticPage): Operation[] {
  const directives = Object.entries({ ...POLICY, ...policy })
  const headers = {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Security-Policy': directives.map((one) => one.join(' ')).join('; '),
  }
  const known = new Map<string, Promise<OperationResponse>>()
  return [
    {
      method: 'GET',
      path,
      summary,
      access: 'none',
      handle: () => ({ status: 200, headers, raw: html }),
    },
    {
      method: 'GET',
      path: `${path}/{file}`,
      summary: 'A file of that page',
      access: 'none',
      handle: ({ params }) => {
        const name = params['file']!
        if (!Object.hasOwn(files, name)) {
          throw new RequestError('NOT_FOUND', 'the page has no such file')
        }
        const answer = known.get(name) ?? read(files[name]!)
        known.set(name, answer)
        // What could not be read now may be later.
        answer.catch(() => known.delete(name))
        return answer
      },
    },
  ]
}

const SIGN_IN = { type: JAVASCRIPT, place: new URL('sign-in.mjs', import.meta.url) }

/** What all pages sign in with: it lies above them here and at the node. */
export function signInOperation(): Operation {
  let answer: Promise<OperationResponse> | null = null
  return {
    method: 'GET',
    path: '/sign-in.mjs',
    summary: 'What pages of this node sign in with',
    access: 'none',
    handle: () => (answer ??= read(SIGN_IN)),
  }
}

async function read(file: PageFile): Promise<OperationResponse> {
  const raw = await readFile('place' in file ? file.place : locate(file))
  return { status: 200, headers: { 'Content-Type': file.type, 'Cache-Control': 'no-cache' }, raw }
}

function locate(file: { readonly package: string; readonly path: string }): string {
  const require = createRequire(import.meta.url)
  return join(dirname(require.resolve(`${file.package}/package.json`)), file.path)
}
