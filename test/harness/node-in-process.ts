// A node inside the test's own process: for what no setting and no request can make, as identities
// with access attributes. Everything else starts a process (node-process.ts).

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadSettings } from '../../config/load.ts'
import { startNode, type NodeOptions } from '../../node/node.ts'
import type { Log } from '../../protocol/log.ts'
import { SECRET } from './node-process.ts'

/** An answer's status and text. */
export interface TextAnswer {
  readonly status: number
  readonly text: string
}

export interface InnerNode {
  readonly port: number
  /** A token of the client `bootstrap`, for these entries alone. Rejects when it isn't given. */
  token(scope?: string): Promise<string>
  /** A request with a body is a POST. */
  ask(path: string, token: string, body?: unknown, type?: string): Promise<TextAnswer>
}

interface Owner {
  teardown(end: () => Promise<void>): void
}

const SILENT: Log = {
  ...{ trace: () => undefined, debug: () => undefined, info: () => undefined },
  ...{ warn: () => undefined, error: () => undefined },
}

/** Starts it in a folder of its own; it ends with the test. */
export async function startInside(
  t: Owner,
  env: Readonly<Record<string, string>>,
  attributesOf: NonNullable<NodeOptions['attributesOf']>,
): Promise<InnerNode> {
  const dir = mkdtempSync(join(tmpdir(), 'kontor-'))
  const own = {
    KONTOR_DATA_DIR: dir,
    KONTOR_HTTP_PORT: '0',
    KONTOR_SAMPLE: 'false',
    KONTOR_BOOTSTRAP_SECRET: SECRET,
    KONTOR_RATE_SIGN_IN_ADDRESS: '0',
    KONTOR_RATE_SIGN_IN_CLIENT: '0',
    ...env,
  }
  const loaded = loadSettings(own, [], () => '')
  if ('problems' in loaded) throw new Error(loaded.problems.join(', '))
  const node = await startNode({
    settings: loaded.ok,
    log: SILENT,
    version: '0',
    tell: () => undefined,
    isTerminal: false,
    attributesOf,
    onFatal: (error) => {
      throw error
    },
  })
  t.teardown(async () => {
    await node.stop()
    rmSync(dir, { recursive: true })
  })
  const base = `http://127.0.0.1:${node.port}`
  return {
    port: node.port,
    async token(scope = '') {
      const form = {
        grant_type: 'client_credentials',
        client_id: 'bootstrap',
        client_secret: SECRET,
      }
      const body = new URLSearchParams({ ...form, ...(scope === '' ? null : { scope }) })
      const answer = await fetch(`${base}/oauth/token`, { method: 'POST', body })
      const { access_token: token, error_description: why } = (await answer.json()) as {
        access_token?: string
        error_description?: string
      }
      if (token === undefined) throw new Error(why)
      return token
    },
    async ask(path, token, body, type = 'application/json') {
      const answer = await fetch(base + path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': type },
        ...(body === undefined
          ? null
          : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      return { status: answer.status, text: await answer.text() }
    },
  }
}
