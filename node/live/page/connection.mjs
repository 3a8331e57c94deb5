// One live query over `/ws`, kept up: it comes back after whatever ended the socket, and goes on
// from where it was. What it touches of the world comes in.
//
//   off --signIn--> connecting --authenticated, query--> live
//    ^                 ^   |                              |
//    |                 |   +---- closed, or silent -------+
//    |             time is over        |
//    |                 +---------- waiting
//    +--- the token is not good, from anywhere;  idle: nothing is watched
//
// Source: CONTRACT 1.10.

import { LiveList } from './list.mjs'

/** @typedef {import('./list.mjs').Frame} Frame */
/** @typedef {'off' | 'connecting' | 'idle' | 'live' | 'waiting'} State */

/** @typedef {{ readonly waitMs?: number, readonly message?: string }} About */

/**
 * @typedef {object} World
 * @property {() => WebSocket} open
 * @property {(run: () => void, ms: number) => unknown} after
 * @property {(timer: unknown) => void} cancel
 * @property {() => number} random 0 to 1
 */

/**
 * @typedef {object} Listener
 * @property {(state: State, about: About) => void} state
 * @property {(change: import('./list.mjs').Change, frame: Frame) => void} changed
 * @property {(fault: Frame) => void} refused the query is wrong, or not permitted any more
 */

/** Nothing for so long, not even a ping, which comes every 30 s: nobody is there. */
const SILENT_MS = 65_000
const WAIT_MS_MIN = 250
const WAIT_MS_MAX = 5_000
/** What the node's close codes say; see CONTRACT 1.10. */
const AUTH_FAILED = 4401
/** What can't be done now and can later. */
const LATER = ['UNAVAILABLE', 'TOO_BUSY', 'INDEX_BEHIND']

export class LiveConnection {
  list = new LiveList()
  /** @type {State} */
  state = 'off'
  #world
  #listener
  #token = ''
  /** @type {object | null} */
  #query = null
  /** @type {WebSocket | null} */
  #socket = null
  #isKnown = false
  #queryId = 0
  #tries = 0
  /** @type {unknown} */
  #timer = null
  /** @type {number | null} */
  #comeBackMs = null
  #message = ''

  /**
   * @param {World} world
   * @param {Listener} listener
   */
  constructor(world, listener) {
    this.#world = world
    this.#listener = listener
  }

  /** @param {string} token */
  signIn(token) {
    this.#leave()
    this.#token = token
    this.#tries = 0
    this.#connect()
  }

  /**
   * Another query, or the same anew.
   *
   * @param {object} query
   */
  watch(query) {
    this.#query = query
    this.list.clear()
    this.#listener.changed('all', { type: 'watch' })
    if (!this.#isKnown) return
    this.#become('connecting')
    this.#send({ type: 'deleteLiveQuery', liveQueryId: this.#liveQueryId })
    this.#ask()
  }

  /** Tries at once where it waits. */
  hurry() {
    if (this.state === 'waiting') this.#connect()
  }

  stop() {
    this.#leave()
    this.#become('off')
  }

  // --- the socket -------------------------------------------------------------------------

  #connect() {
    this.#world.cancel(this.#timer)
    this.#become('connecting')
    this.#comeBackMs = null
    const socket = this.#world.open()
    this.#socket = socket
    this.#isKnown = false
    this.#listenOn()
    socket.addEventListener('open', () => {
      if (socket === this.#socket) this.#send({ type: 'auth', token: this.#token })
    })
    socket.addEventListener('message', ({ data }) => {
      if (socket !== this.#socket) return
      this.#listenOn()
      this.#take(JSON.parse(String(data)))
    })
    socket.addEventListener('close', ({ code }) => {
      if (socket === this.#socket) this.#ended(code)
    })
  }

  /** Whoever says nothing for long is gone, though nothing has told so. */
  #listenOn() {
    this.#world.cancel(this.#timer)
    const socket = this.#socket
    this.#timer = this.#world.after(() => {
      if (socket === null || socket !== this.#socket) return
      socket.close()
      this.#ended(0)
    }, SILENT_MS)
  }

  /** @param {number} code */
  #ended(code) {
    this.#socket = null
    this.#isKnown = false
    this.#world.cancel(this.#timer)
    if (code === AUTH_FAILED) {
      this.#become('off', { message: this.#message })
      return
    }
    const most = Math.min(WAIT_MS_MAX, WAIT_MS_MIN * 2 ** this.#tries++)
    const waitMs = Math.round(this.#comeBackMs ?? most * (0.5 + this.#world.random() / 2))
    this.#become('waiting', { waitMs })
    this.#timer = this.#world.after(() => this.#connect(), waitMs)
  }

  #leave() {
    this.#world.cancel(this.#timer)
    const socket = this.#socket
    this.#socket = null
    this.#isKnown = false
    socket?.close()
  }

  /** @param {object} frame */
  #send(frame) {
    this.#socket?.send(JSON.stringify(frame))
  }

  /**
   * @param {State} state
   * @param {About} about
   */
  #become(state, about = {}) {
    this.state = state
    this.#listener.state(state, about)
  }

  // --- frames -----------------------------------------------------------------------------

  get #liveQueryId() {
    return `list-${this.#queryId}`
  }

  #ask() {
    this.#queryId++
    const { position } = this.list
    this.#send({
      type: 'createLiveQuery',
      liveQueryId: this.#liveQueryId,
      query: this.#query,
      ...(position === null ? {} : { resume: position }),
    })
  }

  /** @param {Frame} frame */
  #take(frame) {
    const { type, liveQueryId } = frame
    if (type === 'ping') this.#send({ type: 'pong' })
    else if (type === 'authenticated') this.#known()
    else if (type === 'closing') this.#comeBackMs = Number(frame['reconnectAfterMs'])
    else if (type === 'error') this.#message = String(frame['message'])
    else if (liveQueryId === this.#liveQueryId) this.#takeOfQuery(frame)
  }

  #known() {
    this.#isKnown = true
    if (this.#query === null) this.#become('idle')
    else this.#ask()
  }

  /** @param {Frame} frame */
  #takeOfQuery(frame) {
    if (frame.type === 'liveQueryError') {
      this.#refused(frame)
      return
    }
    const change = this.list.take(frame)
    if (frame.type === 'liveQueryCreated') {
      this.#tries = 0
      this.#become('live')
    }
    if (change !== null) this.#listener.changed(change, frame)
  }

  /** @param {Frame} fault */
  #refused(fault) {
    if (LATER.includes(String(fault['code']))) {
      this.#socket?.close()
      return
    }
    this.#query = null
    this.list.clear()
    this.#become('idle')
    this.#listener.refused(fault)
  }
}
