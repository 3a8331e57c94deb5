// The address of a node, as people give it.

import { EXIT, Failure } from './failure.ts'
import type { World } from './world.ts'

export const NO_URL = 'It must begin with http:// or https://.'

/** Without slashes at its end; null: it is none. */
export function nodeUrl(text: string): string | null {
  const url = URL.parse(text)
  if (url === null || !['http:', 'https:'].includes(url.protocol)) return null
  return url.href.replace(/\/+$/, '')
}

/** What KONTOR_URL says; undefined: nothing. Throws Failure. */
export function urlOfEnvironment({ env }: Pick<World, 'env'>): string | undefined {
  const text = env['KONTOR_URL']
  if (text === undefined) return undefined
  const url = nodeUrl(text)
  if (url === null) throw new Failure(`KONTOR_URL is ${text}. ${NO_URL}`, EXIT.wrongArguments)
  return url
}
