// The wire inside one process: what the embedded mode runs on, and the twin of the Redis wire in
// tests, where it drops, doubles and delays. It stands between edges and owners of one process.
// Source: PROTOCOL 3.16.

import type { Envelope, WireReply } from '../../protocol/message.ts'
import type { Receive, Wire } from '../wire.ts'

type Respond = (reply: WireReply) => void

/**
 * Delivers by a call, once what has arrived in this tick has been handled (`defer`): the turns of
 * many requests then run one after the other, which is cheaper than each behind its own request.
 */
export function memoryWire(defer: (run: () => void) => void): Wire {
  const receivers = new Map<string, Receive>()
  let waiting: Delivery[] = []
  const deliver = (): void => {
    const all = waiting
    waiting = []
    for (const { to, shard, envelope, respond } of all) {
      receivers.get(to)?.(shard, envelope, respond)
    }
  }
  return {
    serve: (incarnation, receive) => void receivers.set(incarnation, receive),
    send(to, shard, envelope, respond) {
      if (waiting.push({ to, shard, envelope, respond }) === 1) defer(deliver)
    },
    close: (incarnation) => void receivers.delete(incarnation),
  }
}

interface Delivery {
  readonly to: string
  readonly shard: number
  readonly envelope: Envelope
  readonly respond: Respond
}

export interface Nastiness {
  /** 0..1, drawn anew for each delivery. */
  readonly chance: () => number
  readonly drop: number
  readonly double: number
  readonly delay: number
  /** Runs a delivery later, in any order with others. */
  readonly later: (deliver: () => void) => void
}

/** A wire as bad as a real one may be: lost, doubled and reordered envelopes and answers. */
export function nastyWire(inner: Wire, nasty: Nastiness): Wire {
  const { chance, drop, double, delay, later } = nasty
  const bad = (deliver: () => void): void => {
    if (chance() < drop) return
    const times = chance() < double ? 2 : 1
    for (let i = 0; i < times; i++) {
      if (chance() < delay) later(deliver)
      else deliver()
    }
  }
  return {
    serve: (incarnation, receive) => inner.serve(incarnation, receive),
    close: (incarnation) => inner.close(incarnation),
    send(to: string, shard: number, envelope: Envelope, respond: Respond) {
      let answered = false
      const once: Respond = (reply) => {
        bad(() => {
          if (answered) return
          answered = true
          respond(reply)
        })
      }
      bad(() => inner.send(to, shard, envelope, once))
    },
  }
}
