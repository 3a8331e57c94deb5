// What every wire does, whatever carries it: the suite that the wire in memory and the one over
// Redis both pass. The port is cluster/wire.ts. Whether anything arrives is no promise of the port;
// here nothing disturbs it, and it does.

import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import type { Envelope, WireReply } from '../../protocol/message.ts'
import type { Inbox, Notice, Parcel, Wire } from '../wire.ts'

export interface WireHarness {
  /** Wires of two processes that reach each other: in memory both are the same. */
  readonly wires: readonly [Wire, Wire]
  readonly stop?: () => Promise<void>
}

const ENVELOPE: Envelope = {
  messageId: { id: 'f'.repeat(32), kind: 'edge' },
  to: { type: 'order', id: '01900000-0000-7000-8000-000000000001' },
  virtual: false,
  copy: 0,
  messages: [{ type: 'create', body: { text: 'Grüße, 注文 \u{1f4e6}\n"', amount: 0.1 + 0.2 } }],
  bodyHash: '',
  budgetMs: 30_000,
  by: 'tester',
  preview: false,
  crashes: 0,
  trace: 'test',
}
const ANSWERED: WireReply = {
  outcome: 'answered',
  actorId: '01900000-0000-7000-8000-000000000001',
  keys: ['A-1'],
  results: [{ type: 'create', success: true, data: { number: 'A-1' } }],
  position: { shard: 3, offset: 12 },
}

/** A parcel from that edge, told apart by its trace. */
export function parcelOf(from: string, trace = 'test', more: Partial<Envelope> = {}): Parcel {
  return { shard: 3, epoch: 7, from, envelope: { ...ENVELOPE, trace, ...more } }
}

/** An inbox that keeps what it gets, and answers with `reply`. */
export class RecordingInbox implements Inbox {
  readonly parcels: Parcel[] = []
  readonly notices: (readonly [Notice, string])[] = []
  reply: ((parcel: Parcel) => WireReply | null) | null = () => ANSWERED

  receive(parcel: Parcel, respond: (reply: WireReply) => void): void {
    this.parcels.push(parcel)
    const reply = this.reply?.(parcel)
    if (reply) respond(reply)
  }

  hear(notice: Notice, from: string): void {
    this.notices.push([notice, from])
  }
}

const WAIT_MS = 5_000

/** The answer to one copy; null when none comes in time. */
export function ask(
  wire: Wire,
  to: string,
  parcel: Parcel,
  waitMs = WAIT_MS,
): Promise<WireReply | null> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(null), waitMs)
    wire.send(to, parcel, (reply) => {
      clearTimeout(timer)
      resolve(reply)
    })
  })
}

/** Runs until it holds, or for five seconds. */
export async function eventually(holds: () => boolean, waitMs = WAIT_MS): Promise<boolean> {
  const until = performance.now() + waitMs
  while (!holds() && performance.now() < until) {
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  return holds()
}

export function wireConformance(t: Test, start: Start): void {
  void t.test('a parcel arrives as it was, and its answer comes back', (s) => arrives(s, start))
  void t.test('an answer finds the copy that it is for', (s) => answersFind(s, start))
  void t.test('what one member sends another arrives in its order', (s) => keepsOrder(s, start))
  void t.test('who sends to itself hears itself', (s) => hearsItself(s, start))
  void t.test('a copy to nobody has not left', (s) => nobody(s, start))
  void t.test('an owner that never answers is silent, and others are heard', (s) =>
    silence(s, start),
  )
  void t.test('a notice reaches all that it is told, with who says it', (s) => notices(s, start))
  void t.test('a closed inbox is nobody, whoever closes it', (s) => closing(s, start))
}

type Start = () => Promise<WireHarness>

/** Two processes, each with an inbox. */
async function two(t: Test, start: Start) {
  const { wires, stop } = await start()
  if (stop) t.teardown(stop)
  const [a, b] = wires
  const names = { a: randomUUID(), b: randomUUID() }
  const inboxes = { a: new RecordingInbox(), b: new RecordingInbox() }
  await a.serve(names.a, inboxes.a)
  await b.serve(names.b, inboxes.b)
  return { a, b, names, inboxes }
}

async function arrives(t: Test, start: Start): Promise<void> {
  const { a, names, inboxes } = await two(t, start)
  const parcel = parcelOf(names.a)
  t.strictSame(await ask(a, names.b, parcel), ANSWERED)
  const [got] = inboxes.b.parcels
  const { budgetMs } = got!.envelope
  t.ok(budgetMs <= ENVELOPE.budgetMs && budgetMs > ENVELOPE.budgetMs - 5_000, 'the budget')
  t.strictSame({ ...got, envelope: { ...got!.envelope, budgetMs: ENVELOPE.budgetMs } }, parcel)
}

async function answersFind(t: Test, start: Start): Promise<void> {
  const { a, b, names, inboxes } = await two(t, start)
  const reply = ({ envelope }: Parcel): WireReply => ({
    outcome: 'see',
    actorId: envelope.trace,
  })
  inboxes.a.reply = reply
  inboxes.b.reply = reply
  const traces = Array.from({ length: 500 }, (_, i) => `trace-${i}`)
  const there = traces.map((trace) => ask(a, names.b, parcelOf(names.a, trace)))
  const back = traces.map((trace) => ask(b, names.a, parcelOf(names.b, trace)))
  const expected = traces.map((actorId) => ({ outcome: 'see', actorId }))
  t.strictSame(await Promise.all(there), expected)
  t.strictSame(await Promise.all(back), expected)
}

async function keepsOrder(t: Test, start: Start): Promise<void> {
  const { a, names, inboxes } = await two(t, start)
  const traces = Array.from({ length: 300 }, (_, i) => `trace-${i}`)
  for (const [i, trace] of traces.entries()) {
    a.send(names.b, parcelOf(names.a, trace), () => undefined)
    if (i % 50 === 49) await new Promise((resolve) => setImmediate(resolve))
  }
  t.ok(await eventually(() => inboxes.b.parcels.length === traces.length))
  t.strictSame(
    inboxes.b.parcels.map(({ envelope }) => envelope.trace),
    traces,
  )
}

async function hearsItself(t: Test, start: Start): Promise<void> {
  const { a, names, inboxes } = await two(t, start)
  let inSend = true
  inboxes.a.reply = () => {
    t.notOk(inSend, 'once the sender is done')
    return ANSWERED
  }
  const answer = ask(a, names.a, parcelOf(names.a))
  inSend = false
  t.strictSame(await answer, ANSWERED)
  t.strictSame(inboxes.a.parcels, [parcelOf(names.a)])
}

async function nobody(t: Test, start: Start): Promise<void> {
  const { a, names } = await two(t, start)
  t.match(await ask(a, randomUUID(), parcelOf(names.a)), { outcome: 'unsent' })
}

async function silence(t: Test, start: Start): Promise<void> {
  const { a, names, inboxes } = await two(t, start)
  inboxes.b.reply = ({ envelope }) => (envelope.trace === 'silent' ? null : ANSWERED)
  const silent = ask(a, names.b, parcelOf(names.a, 'silent'), 300)
  t.strictSame(await ask(a, names.b, parcelOf(names.a)), ANSWERED)
  t.equal(await silent, null)
}

async function notices(t: Test, start: Start): Promise<void> {
  const { a, names, inboxes } = await two(t, start)
  const notice: Notice = { kind: 'owns', shard: 5, epoch: 9 }
  a.tell([names.a, names.b, randomUUID()], notice, names.a)
  a.tell([names.b], { kind: 'stopped' }, names.a)
  t.ok(await eventually(() => inboxes.a.notices.length === 1 && inboxes.b.notices.length === 2))
  t.strictSame(inboxes.a.notices, [[notice, names.a]])
  t.strictSame(inboxes.b.notices, [
    [notice, names.a],
    [{ kind: 'stopped' }, names.a],
  ])
}

async function closing(t: Test, start: Start): Promise<void> {
  const { a, b, names, inboxes } = await two(t, start)
  b.close(names.b)
  const sent = await ask(a, names.b, parcelOf(names.a), 2_000)
  t.match(sent, { outcome: 'unsent' })
  t.equal(inboxes.b.parcels.length, 0)

  const again = randomUUID()
  await b.serve(again, inboxes.b)
  t.strictSame(await ask(a, again, parcelOf(names.a)), ANSWERED, 'its next incarnation is heard')
}
