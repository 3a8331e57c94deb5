// The wire inside one process: what the embedded mode runs on, and the twin of the Redis wire in
// tests, where it drops, doubles and delays. Source: PROTOCOL 3.16.

import type { WireReply } from '../../protocol/message.ts'
import type { Inbox, Notice, Parcel, Wire } from '../wire.ts'

type Respond = (reply: WireReply) => void

interface Delivery {
  readonly to: string
  readonly parcel: Parcel
  readonly respond: Respond
}

/**
 * Delivers by a call, once what has arrived in this tick has been handled (`defer`): the turns of
 * many requests then run one after the other, which is cheaper than each behind its own request.
 */
export function memoryWire(defer: (run: () => void) => void): Wire {
  const inboxes = new Map<string, Inbox>()
  let waiting: Delivery[] = []
  const deliver = (): void => {
    const all = waiting
    waiting = []
    for (const { to, parcel, respond } of all) inboxes.get(to)?.receive(parcel, respond)
  }
  return {
    isUp: true,
    serve: (incarnation, inbox) => void inboxes.set(incarnation, inbox),
    send(to, parcel, respond) {
      if (!inboxes.has(to)) respond({ outcome: 'unsent' })
      else if (waiting.push({ to, parcel, respond }) === 1) defer(deliver)
    },
    tell(to, notice, from) {
      for (const one of to) defer(() => inboxes.get(one)?.hear(notice, from))
    },
    close: (incarnation) => void inboxes.delete(incarnation),
  }
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

/** A wire as bad as a real one may be: lost, doubled and reordered envelopes, answers, hints. */
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
    get isUp() {
      return inner.isUp
    },
    serve: (incarnation, inbox) => inner.serve(incarnation, inbox),
    close: (incarnation) => inner.close(incarnation),
    tell: (to: readonly string[], notice: Notice, from: string) =>
      bad(() => inner.tell(to, notice, from)),
    send(to: string, parcel: Parcel, respond: Respond) {
      let answered = false
      const once: Respond = (reply) => {
        bad(() => {
          if (answered) return
          answered = true
          respond(reply)
        })
      }
      bad(() => inner.send(to, parcel, once))
    },
  }
}
