// Asks a node to make its graph index anew, or to update what phrases find, and looks how far it
// is, over whatever ends a node meanwhile. Clock, waiting and output come in. Source: CONTRACT 0
// "Operations", PROTOCOL 3.13.5.

import { FatalError, Session, reasonOf } from '../session.ts'
import type { Credentials } from '../session.ts'
import type { RebuildOptions } from './options.ts'

const ANSWER_MS_MAX = 30_000
const LOOK_MS = 500
const TEXT_SHOWN_MAX = 300

/** As the node tells it. */
export interface Progress {
  readonly state: 'idle' | 'filling' | 'taking-over' | 'running'
  readonly done: number
  readonly total: number
}

/** What is asked for by POST, and watched by GET. */
export interface Asked {
  readonly path: string
  readonly body?: object
}

export interface World {
  readonly now: () => number
  readonly delay: (ms: number) => Promise<void>
  readonly progress: (progress: Progress) => void
  /** A line for the user, at once. */
  readonly tell: (line: string) => void
}

/** How it ended: null, or why it could not be done or seen to its end. */
export async function rebuildIndex(
  options: Omit<RebuildOptions, 'credentials'> & { readonly asked: Asked },
  credentials: Credentials,
  world: World,
): Promise<string | null> {
  const node = new Node(options, credentials, world)
  try {
    if (options.starts) await node.ask('POST')
    if (!options.waits) return null
    for (;;) {
      const progress = (await node.ask('GET')) as Progress
      world.progress(progress)
      if (progress.state === 'idle') return null
      await world.delay(LOOK_MS)
    }
  } catch (error) {
    if (!(error instanceof FatalError)) throw error
    return error.message
  }
}

class Node {
  readonly #session: Session
  readonly #retryMs: number
  readonly #asked: Asked
  readonly #world: World

  constructor(
    { url, retryMs, asked }: Pick<RebuildOptions, 'url' | 'retryMs'> & { readonly asked: Asked },
    credentials: Credentials,
    world: World,
  ) {
    this.#session = new Session(url, credentials, world.now())
    this.#retryMs = retryMs
    this.#asked = asked
    this.#world = world
  }

  /** The answer's body. What nobody answers, or a node can't do now, is asked again. */
  async ask(method: 'GET' | 'POST'): Promise<unknown> {
    const { now, delay, tell } = this.#world
    const beganMs = now()
    let told = ''
    for (;;) {
      const answer = await this.#try(method)
      if ('body' in answer) return answer.body
      if (now() - beganMs >= this.#retryMs) throw new FatalError(answer.problem)
      if (answer.problem !== told) tell(`${answer.problem}; trying again`)
      told = answer.problem
      await delay(LOOK_MS)
    }
  }

  async #try(method: string): Promise<{ body: unknown } | { problem: string }> {
    const { path, body } = this.#asked
    const sent = method === 'POST' && body !== undefined
    let token
    let response
    let text
    try {
      token = await this.#session.token()
      response = await fetch(`${this.#session.url}${path}`, {
        method,
        headers: {
          Authorization: `Bearer ${token}`,
          ...(sent ? { 'Content-Type': 'application/json' } : {}),
        },
        ...(sent ? { body: JSON.stringify(body) } : {}),
        signal: AbortSignal.timeout(ANSWER_MS_MAX),
      })
      text = await response.text()
    } catch (error) {
      if (error instanceof FatalError) throw error
      return { problem: reasonOf(error as Error) }
    }
    const { status } = response
    if (response.ok) return { body: text === '' ? null : JSON.parse(text) }
    const problem = `${method} ${path}: ${status} ${text.slice(0, TEXT_SHOWN_MAX)}`
    if (status === 401) this.#session.forget(token)
    else if (status < 500 && status !== 429) throw new FatalError(problem)
    return { problem }
  }
}
