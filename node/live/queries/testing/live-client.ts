// A client of one live query on twins: its socket is a list of frames, it comes back with its last
// position, and what it may do can change under it. Source: CONTRACT 1.10.

import { Acl, parseScope } from '../../../../protocol/ace.ts'
import { type Attributes, NO_ATTRIBUTES } from '../../../../protocol/attributes.ts'
import type { Doc } from '../../../../protocol/graph/evaluate.ts'
import type { Identity } from '../../../access/identity.ts'
import type { Connection, FrameType } from '../../socket/frames.ts'
import { LiveView } from './live-view.ts'
import type { LiveFrame } from './live-view.ts'
import { SOMEBODY } from '../../../access/testing/sessions.ts'

const ALL = new Acl(parsed('*'))

function parsed(scope: string): ConstructorParameters<typeof Acl>[0] {
  const scopes = parseScope(scope)
  if (!scopes.ok) throw new Error(`not a scope: ${scope}`)
  return scopes.aces
}

export interface MemberOfClient {
  readonly name: string
  readonly frames: readonly FrameType[]
}

export class LiveClient {
  readonly query: Doc
  readonly view: LiveView
  /** Null: it is not connected. */
  member: MemberOfClient | null = null
  /** The error that its query ended with last. */
  ended: string | null = null
  /** All frames, as they came. */
  readonly frames: LiveFrame[] = []
  bufferedBytes = 0
  #connection = 0
  #taken = 0
  #identity: Identity | null = identityOf(ALL)
  #changed: (() => void)[] = []
  #closed: (() => void)[] = []
  #drained: (() => void)[] = []

  constructor(query: Doc) {
    this.query = query
    const idField = query['edge'] === 'orders' ? 'orderId' : 'lineId'
    const limit = (query['limit'] as number | undefined) ?? 100
    this.view = new LiveView({ idField, limit, versionOf: (node) => node['version'] as number })
  }

  connect(member: MemberOfClient): void {
    this.member = member
    this.ended = null
    this.#connection++
    const row = member.frames.find(({ type }) => type === 'createLiveQuery')!
    const { position } = this.view
    const resume = position === null ? {} : { resume: position }
    const frame = { type: 'createLiveQuery', liveQueryId: 'q', query: this.query, ...resume }
    void row.handle(this.#socket(this.#connection), frame as never)
  }

  /** It takes what it was sent, and leaves, or its member has. */
  lost(): void {
    this.take()
    for (const run of this.#closed) run()
    this.member = null
    this.bufferedBytes = 0
    ;[this.#changed, this.#closed, this.#drained] = [[], [], []]
  }

  /** What it may do is another from now on; null: nobody can tell. */
  may(scope: string | null, attributes: Attributes = NO_ATTRIBUTES): void {
    const acl = scope === null ? null : new Acl(parsed(scope), null, attributes)
    this.#identity = acl === null ? null : identityOf(acl)
    for (const run of this.#changed) run()
  }

  /** It reads again, all that was sent. */
  drain(): void {
    this.bufferedBytes = 0
    for (const run of this.#drained) run()
  }

  take(): void {
    for (const frame of this.frames.slice(this.#taken)) {
      this.view.take(frame)
      if (frame.type !== 'liveQueryError') continue
      this.ended = String(frame['message'])
      this.member = null
    }
    this.#taken = this.frames.length
  }

  #socket(connection: number): Connection {
    const identity = (): Identity | null => this.#identity
    const buffered = (): number => this.bufferedBytes
    const sendText = (text: string): boolean => {
      if (connection === this.#connection) this.frames.push(JSON.parse(text) as LiveFrame)
      return true
    }
    return {
      id: connection,
      access: {
        get identity() {
          return identity()
        },
        onChange: (run) => void this.#changed.push(run),
      },
      get bufferedBytes() {
        return buffered()
      },
      sendText,
      send: (frame) => sendText(JSON.stringify(frame)),
      sendError: (error, about) =>
        void sendText(JSON.stringify({ type: 'liveQueryError', message: String(error), ...about })),
      onClose: (run) => void this.#closed.push(run),
      onDrained: (run) => void this.#drained.push(run),
    }
  }
}

function identityOf(acl: Acl): Identity {
  return { ...SOMEBODY, acl, id: 'c', sessionId: 's' }
}
