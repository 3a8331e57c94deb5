// The live scenarios: changes to sockets that each watch a few of them, a change that all watch,
// many queries that no change touches, what watchers cost who creates orders; and the first of them
// for minutes.

import { closedLoop } from '../load/closed-loop.ts'
import { loadResult, type LoadResult } from '../load/load.ts'
import { openLoop } from '../load/open-loop.ts'
import { Recorder } from '../load/recorder.ts'
import { inTurn, post, type Destination, type PreparedRequest } from '../load/requests.ts'
import { SET_STAMP, StampedRequest, stampOf } from '../load/stamped.ts'
import { Watchers, type LiveQuery } from '../load/watchers.ts'
import type { BenchSettings } from '../options.ts'
import { benchOrder, createMessages, customerNumber } from '../orders.ts'
import type { Installation } from '../target/installation.ts'
import { Windows } from '../windows.ts'
import { requestScenario, type Run, type Scenario } from './scenario.ts'
import { newPrefix, seedOrders, type SeededOrder } from './seed.ts'
import { creates } from './writes.ts'

/** Requests of changes leave over so many connections. */
const CHANGE_CONNECTIONS = 64
/** Of so many changes one is a new order; the others change one that is there. */
const NEW_EVERY = 4
/** Of so many windows of a soak one is pushed on by new orders. */
const SLIDES_EVERY = 10
const HOT_ORDERS = 20
const HOT_RATE = 10
const WINDOW = 20
/** Queries of one socket. */
const QUERIES_OF_SOCKET = 100
/** Standing queries that the many are compared with. */
const FEW_STANDING = 100
const NEW_ORDER = '/resources/actors/order/new'

const NODE = {
  fields: ['orderId', 'orderNumber', 'orderState', 'orderTotal', 'createdAt', "dynamic->'stamp'"],
}

function watching(filter: string): LiveQuery {
  return { edge: 'orders', filter, orderBy: 'createdAt desc', limit: WINDOW, node: NODE }
}

/** Queries that no order of the bench matches, of the kinds that shops have. */
export function matchingNothing(n: number): LiveQuery {
  const filters = [
    `customerNumber == 'none-${n}'`,
    `orderState == 'confirmed' and customerNumber == 'none-${n}'`,
    `orderTotal > ${1_000_000 + n}`,
    `orderNumber in ['none-${n}', 'never-${n}']`,
  ]
  return watching(filters[n % filters.length]!)
}

interface Changes {
  readonly queries: readonly (readonly LiveQuery[])[]
  /** Changes a second. */
  readonly rate: number
  readonly next: (to: Destination, n: number) => PreparedRequest
  /** How many different ones there are. */
  readonly variety: number
  /** Watchers of the n-th change. */
  readonly watchersOf: (n: number) => readonly number[]
  /** Of a long one: its course, with the frames as what is measured. */
  readonly long?: { readonly seconds: number; readonly windows: Windows }
}

/** Latencies are those from when a change was due to each of its frames. */
async function watched(
  { installation, settings, readings }: Run,
  of: Changes,
): Promise<LoadResult> {
  const windows = of.long?.windows
  const frames = new Recorder(windows)
  const to = await installation.destination()
  const watchers = await Watchers.open([to], of.queries, frames)
  try {
    const stamped = Array.from({ length: of.variety }, (_, n) => {
      return new StampedRequest(of.next(to, n))
    })
    const newestUs = of.queries.map(() => 0)
    let at = -1
    let paused: Promise<void> | undefined
    const result = await openLoop({
      to,
      connections: CHANGE_CONNECTIONS,
      warmUpSeconds: settings.warmUpSeconds,
      seconds: of.long?.seconds ?? settings.seconds,
      rate: of.rate,
      next: (dueMs) => {
        at = (at + 1) % of.variety
        const stampUs = stampOf(dueMs)
        for (const watcher of of.watchersOf(at)) newestUs[watcher] = stampUs
        return stamped[at]!.at(stampUs)
      },
      readings: {
        started() {
          frames.startMeasuring(performance.now())
          readings.started()
          windows?.resume()
        },
        ended() {
          readings.ended()
          paused = windows?.pause()
        },
      },
    })
    await paused
    const unseen = await watchers.unseen(newestUs, settings.seenWithinMs)
    if (unseen > 0) frames.failure('a watcher has not seen its last change', unseen)
    frames.stopMeasuring(performance.now())
    const { latencies, slices, failures } = loadResult(frames, result.measuredMs)
    const all = { latencies, slices, failures: new Map([...result.failures, ...failures]) }
    const course = windows && { windows: windows.done, restart: null }
    return { ...result, ...all, ...(course && { course }) }
  } finally {
    watchers.close()
  }
}

function stampOrder(to: Destination, order: SeededOrder): PreparedRequest {
  const body = { commands: [SET_STAMP] }
  const path = `/resources/actors/order/${order.orderId}`
  return { kind: 'command', bytes: post(to, path, [{ type: 'applyCommands', body }]) }
}

function stampedNew(to: Destination, n: number): PreparedRequest {
  const order = benchOrder(n)
  const commands = [...(order.body['commands'] as readonly unknown[]), SET_STAMP]
  const messages = createMessages({ ...order, body: { ...order.body, commands } })
  return { kind: 'create', bytes: post(to, NEW_ORDER, messages) }
}

function liveScenario(
  settings: BenchSettings,
  rest: Pick<Scenario, 'name' | 'connections' | 'askedRate' | 'load'> & Partial<Scenario>,
): Scenario {
  const floors = [] as const
  return requestScenario(settings, { loop: 'open', node: 'live', floors, ...rest })
}

/** Each socket watches its customer's orders: about a change a second. */
function fanOut(settings: BenchSettings, isSoak: boolean): Scenario {
  const { watchers, liveRate } = settings
  let orders: readonly SeededOrder[] = []
  // In a soak only some windows are pushed on by new orders: what lies behind is not told of.
  const slides = (socket: number): boolean => !isSoak || socket % SLIDES_EVERY === 0
  const long = (installation: Installation) => ({
    seconds: settings.soakMinutes * 60,
    windows: new Windows(installation, settings.windowSeconds),
  })
  return liveScenario(settings, {
    name: isSoak ? 'live-soak' : 'live-fanout',
    once: isSoak,
    connections: [watchers],
    askedRate: liveRate,
    async prepare(installation) {
      orders = await seeded(installation, 'L', watchers)
    },
    load: (run) =>
      watched(run, {
        queries: orders.map((_, n) => [watching(`customerNumber == '${customerNumber(n)}'`)]),
        rate: liveRate,
        variety: NEW_EVERY * watchers,
        next: (to, n) => {
          const socket = n % watchers
          if (n >= watchers) return stampOrder(to, orders[socket]!)
          return stampedNew(to, slides(socket) ? socket : watchers + socket)
        },
        watchersOf: (n) => (!isSoak || n < watchers === slides(n % watchers) ? [n % watchers] : []),
        ...(isSoak && { long: long(run.installation) }),
      }),
  })
}

/** All sockets watch the same few orders. */
function hotFanOut(settings: BenchSettings): Scenario {
  const { watchers } = settings
  let orders: readonly SeededOrder[] = []
  const all = Array.from({ length: watchers }, (_, n) => n)
  return liveScenario(settings, {
    name: 'live-fanout-hot',
    connections: [watchers],
    askedRate: HOT_RATE,
    async prepare(installation) {
      orders = await seeded(installation, 'F', HOT_ORDERS)
    },
    load(run) {
      const numbers = orders.map(({ orderNumber }) => `'${orderNumber}'`).join()
      return watched(run, {
        queries: all.map(() => [watching(`orderNumber in [${numbers}]`)]),
        rate: HOT_RATE,
        variety: HOT_ORDERS,
        next: (to, n) => stampOrder(to, orders[n]!),
        watchersOf: () => all,
      })
    },
  })
}

/** Changes that no standing query matches: few of them, and many. */
function standing(settings: BenchSettings): Scenario {
  const { liveRate, watchers } = settings
  let orders: readonly SeededOrder[] = []
  return liveScenario(settings, {
    name: 'live-standing',
    connections: [Math.min(FEW_STANDING, settings.standing), settings.standing],
    askedRate: liveRate,
    async prepare(installation) {
      orders = await seeded(installation, 'T', watchers)
    },
    async load({ installation, settings: { seconds, warmUpSeconds }, connections, readings }) {
      const recorder = new Recorder()
      const to = await installation.destination()
      const sockets = await Watchers.open([to], nothingOf(connections, QUERIES_OF_SOCKET), recorder)
      const load = { to, connections: CHANGE_CONNECTIONS, seconds, warmUpSeconds, readings }
      const stamped = orders.map((order) => new StampedRequest(stampOrder(to, order)))
      let at = -1
      const next = (dueMs: number): PreparedRequest => {
        at = (at + 1) % stamped.length
        return stamped[at]!.at(stampOf(dueMs))
      }
      return openLoop({ ...load, rate: liveRate, recorder, next }).finally(() => sockets.close())
    },
  })
}

/** Orders are created with no watcher and with many, who see none of them. */
function writers(settings: BenchSettings): Scenario {
  return liveScenario(settings, {
    name: 'live-writers',
    loop: 'closed',
    node: 'live-writers',
    connections: [0, settings.watchers],
    askedRate: null,
    async load({ installation, settings: { seconds, warmUpSeconds }, connections, readings }) {
      const recorder = new Recorder()
      const to = await installation.destination()
      const sockets = await Watchers.open([to], nothingOf(connections, 1), recorder)
      const load = { to, connections: CHANGE_CONNECTIONS, seconds, warmUpSeconds, readings }
      const next = inTurn(creates(to))
      return closedLoop({ ...load, recorder, next }).finally(() => sockets.close())
    },
  })
}

/** In the order of their numbers, as they were made: the n-th is the n-th customer's. */
async function seeded(
  installation: Installation,
  letter: string,
  count: number,
): Promise<readonly SeededOrder[]> {
  const prefix = newPrefix(letter)
  const orders = await seedOrders(installation, { prefix, count, keep: count })
  const place = ({ orderNumber }: SeededOrder): number => Number(orderNumber.slice(prefix.length))
  return orders.toSorted((a, b) => place(a) - place(b))
}

/** So many queries that nothing matches, some a socket. */
function nothingOf(count: number, each: number): readonly (readonly LiveQuery[])[] {
  return Array.from({ length: Math.ceil(count / each) }, (_, i) => {
    const own = Math.min(each, count - i * each)
    return Array.from({ length: own }, (__, j) => matchingNothing(i * each + j))
  })
}

export function liveScenarios(settings: BenchSettings): readonly Scenario[] {
  const many = [hotFanOut(settings), standing(settings), writers(settings)]
  return [fanOut(settings, false), ...many, fanOut(settings, true)]
}
