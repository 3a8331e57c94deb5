// The page's connection: signs in, asks, and comes back after whatever ended the socket, going on
// from where it was. Source: CONTRACT 1.10.

import t from 'tap'
import { LiveConnection } from './connection.mjs'

type Frame = Readonly<Record<string, unknown>>
type Listen = (event: { readonly data?: string; readonly code?: number }) => void

class FakeSocket {
  readonly sent: Frame[] = []
  readonly #listeners = new Map<string, Listen>()
  isClosed = false

  addEventListener(name: string, listen: Listen): void {
    this.#listeners.set(name, listen)
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Frame)
  }

  close(): void {
    this.isClosed = true
  }

  opens(): void {
    this.#listeners.get('open')!({})
  }

  says(frame: Frame): void {
    this.#listeners.get('message')!({ data: JSON.stringify(frame) })
  }

  ends(code: number): void {
    this.#listeners.get('close')!({ code })
  }
}

const QUERY = { edge: 'orders' }

class Scene {
  readonly sockets: FakeSocket[] = []
  readonly timers = new Map<object, { readonly run: () => void; readonly ms: number }>()
  readonly told: unknown[] = []
  readonly connection = new LiveConnection(
    {
      open: () => {
        const socket = new FakeSocket()
        this.sockets.push(socket)
        return socket as unknown as WebSocket
      },
      after: (run, ms) => {
        const timer = {}
        this.timers.set(timer, { run, ms })
        return timer
      },
      cancel: (timer) => void this.timers.delete(timer as object),
      random: () => 1,
    },
    {
      state: (state, about) => void this.told.push([state, about]),
      changed: (change) => void this.told.push(change),
      refused: ({ code }) => void this.told.push(['refused', code]),
    },
  )

  get socket(): FakeSocket {
    return this.sockets.at(-1)!
  }

  /** The one timer that runs: its time is over. Returns what it was. */
  passes(): number {
    if (this.timers.size !== 1) throw new Error(`${this.timers.size} timers`)
    const [[timer, { run, ms }]] = [...this.timers] as [[object, { run: () => void; ms: number }]]
    this.timers.delete(timer)
    run()
    return ms
  }

  /** Up to the answer of the query that was asked last. */
  live(answer: Frame): Frame {
    this.socket.opens()
    this.socket.says({ type: 'authenticated' })
    const asked = this.socket.sent.at(-1)!
    this.socket.says({ type: 'liveQueryCreated', liveQueryId: asked['liveQueryId'], ...answer })
    return asked
  }
}

function watching(): Scene {
  const scene = new Scene()
  scene.connection.watch(QUERY)
  scene.connection.signIn('token')
  return scene
}

t.test('it signs in, asks, answers pings and comes back from where it was', async (t) => {
  const scene = watching()
  const asked = scene.live({ nodes: [{ a: 1 }], position: 'p1' })
  const [first] = scene.sockets
  t.strictSame(first!.sent[0], { type: 'auth', token: 'token' })
  t.match(asked, { type: 'createLiveQuery', query: QUERY })
  t.notOk('resume' in asked)
  first!.says({ type: 'ping' })
  t.strictSame(first!.sent.at(-1), { type: 'pong' })
  t.equal(scene.connection.state, 'live')
  const { liveQueryId } = asked
  first!.says({ type: 'liveQueryAdd', liveQueryId, index: 0, node: { a: 0 }, position: 'p2' })
  first!.ends(1006)
  t.equal(scene.connection.state, 'waiting')
  t.equal(scene.passes(), 250)
  t.match(scene.live({ position: 'p3' }), { resume: 'p2' })
  t.equal(scene.connection.state, 'live')
  t.strictSame(
    scene.connection.list.rows.map(({ node }) => node),
    [{ a: 0 }, { a: 1 }],
  )
  first!.says({ type: 'liveQueryRemove', liveQueryId, index: 0 })
  t.equal(scene.connection.list.rows.length, 2, 'the socket before has nothing to say')
})

t.test('it waits longer each time, as the node asks, and not at all when told', async (t) => {
  const scene = watching()
  const waits: number[] = []
  for (let i = 0; i < 7; i++) {
    scene.socket.ends(1006)
    waits.push(scene.passes())
  }
  t.strictSame(waits, [250, 500, 1000, 2000, 4000, 5000, 5000])
  scene.live({ nodes: [], position: 'p' })
  scene.socket.says({ type: 'closing', reconnectAfterMs: 3_456 })
  scene.socket.ends(1001)
  t.equal(scene.passes(), 3_456)
  scene.live({ position: 'p' })
  scene.socket.ends(1006)
  const before = scene.sockets.length
  scene.connection.hurry()
  t.equal(scene.sockets.length, before + 1)
  t.equal(scene.timers.size, 1, 'one timer at most')
})

t.test('a node that says nothing is left', async (t) => {
  const scene = watching()
  scene.live({ nodes: [], position: 'p' })
  const { socket } = scene
  t.equal(scene.passes(), 65_000)
  t.ok(socket.isClosed)
  t.equal(scene.connection.state, 'waiting')
})

t.test('a token that is not good any more is asked for, and the list goes on', async (t) => {
  const scene = watching()
  scene.live({ nodes: [{ a: 1 }], position: 'p' })
  scene.socket.says({ type: 'error', code: 'AUTH_FAILED', message: 'it has expired' })
  scene.socket.ends(4401)
  t.strictSame(scene.told.at(-1), ['off', { message: 'it has expired' }])
  t.equal(scene.timers.size, 0, 'it does not try again')
  scene.connection.signIn('another')
  t.match(scene.live({ position: 'p' }), { resume: 'p' })
  t.equal(scene.connection.list.rows.length, 1)
})

t.test(
  'a query that is refused is told, and tried again where it only can not be now',
  async (t) => {
    const scene = watching()
    const asked = scene.live({ nodes: [{ a: 1 }], position: 'p' })
    scene.connection.watch({ edge: 'nothing' })
    const [gone, next] = scene.socket.sent.slice(-2)
    t.strictSame(gone, { type: 'deleteLiveQuery', liveQueryId: asked['liveQueryId'] })
    t.notOk('resume' in next!)
    scene.socket.says({ type: 'liveQueryRemove', liveQueryId: asked['liveQueryId'], index: 0 })
    const { liveQueryId } = next!
    scene.socket.says({ type: 'liveQueryError', liveQueryId, code: 'INVALID_QUERY' })
    t.strictSame(scene.told.at(-1), ['refused', 'INVALID_QUERY'])
    t.equal(scene.connection.state, 'idle')
    scene.connection.watch(QUERY)
    const again = scene.socket.sent.at(-1)!['liveQueryId']
    scene.socket.says({ type: 'liveQueryError', liveQueryId: again, code: 'UNAVAILABLE' })
    t.ok(scene.socket.isClosed)
    scene.connection.stop()
    t.equal(scene.connection.state, 'off')
    t.equal(scene.timers.size, 0)
  },
)
