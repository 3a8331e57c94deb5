// A run from the file to the summary: opens the connections, settles orders into the tally, looks
// at the graph at the end. Everything of the world (clock, waiting, output) comes in.

import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { BulkConnection } from './bulk-connection.ts'
import { compareWithGraph, type Comparison } from './graph.ts'
import type { IngestOptions } from './options.ts'
import { OrderSource, type Order } from './order-source.ts'
import { RejectsFile } from './rejects.ts'
import { type Credentials, Session } from '../session.ts'
import { openSource } from './source.ts'
import { orderTotal, Tally } from './tally.ts'
import type { ErrorItem } from '../../protocol/errors.ts'
import type { Invoice } from './online-retail/invoice.ts'

/** How long the graph may show nothing new before it is taken for stuck. */
const GRAPH_PATIENCE_MS = 60_000
const PROGRESS_MS = 500
const FAILURES_SHOWN = 20

export interface World {
  readonly now: () => number
  readonly delay: (ms: number) => Promise<void>
  /** Called now and then while the run goes on. */
  readonly progress: (state: Progress) => void
  /** A line for the user, at once. */
  readonly tell: (line: string) => void
  /** Resolves with the signal's name when the user stops the run. */
  readonly interrupted: Promise<string>
}

export interface Progress {
  readonly share: number
  readonly rowsRead: number
  readonly tally: Tally
  readonly elapsedMs: number
}

export interface RunResult {
  readonly tally: Tally
  readonly rowsRead: number
  /** From the first byte read to the last answer. */
  readonly elapsedMs: number
  /** Null without `--wait`; how long after the last answer all was in the graph. */
  readonly graph: (Comparison & { readonly elapsedMs: number }) | null
  /** Why the run ended before the file did; null when it did not. */
  readonly stopped: string | null
  readonly rejectsFile: string | null
}

export async function runIngest(
  options: IngestOptions,
  credentials: Credentials | null,
  world: World,
): Promise<RunResult> {
  const startMs = world.now()
  const source = openSource(options)
  const tally = new Tally(options.wait)
  const rejects = new RejectsFile(options.rejectsFile)
  const orders = new OrderSource(source, tally, rejects)
  const state = (): Progress => ({
    share: source.progress(),
    rowsRead: source.reader.rowsRead,
    tally,
    elapsedMs: world.now() - startMs,
  })
  const timer = setInterval(() => world.progress(state()), PROGRESS_MS)
  try {
    const run = new Run({ options, orders, tally, rejects, world })
    const stopped =
      credentials === null || options.dryRun ? await run.readOnly() : await run.post(credentials)
    const elapsedMs = world.now() - startMs
    const graph = stopped === null ? await run.compare() : null
    world.progress(state())
    return {
      tally,
      rowsRead: source.reader.rowsRead,
      elapsedMs,
      graph,
      stopped: stopped ?? run.graphProblem,
      rejectsFile: rejects.used ? rejects.path : null,
    }
  } finally {
    clearInterval(timer)
    rejects.close()
  }
}

interface RunParts {
  readonly options: IngestOptions
  readonly orders: OrderSource
  readonly tally: Tally
  readonly rejects: RejectsFile
  readonly world: World
}

class Run {
  /** Why the graph could not be looked at. */
  graphProblem: string | null = null
  readonly #options: IngestOptions
  readonly #orders: OrderSource
  readonly #tally: Tally
  readonly #rejects: RejectsFile
  readonly #world: World
  #session: Session | null = null

  constructor({ options, orders, tally, rejects, world }: RunParts) {
    this.#options = options
    this.#orders = orders
    this.#tally = tally
    this.#rejects = rejects
    this.#world = world
  }

  /** `--dry-run`: every order that would be made counts as accepted. */
  async readOnly(): Promise<string | null> {
    try {
      while (await this.#orders.pull()) {
        for (let order = this.#orders.take(); order !== null; order = this.#orders.take()) {
          this.#tally.accept(order.invoice, 'created')
        }
      }
      return null
    } catch (error) {
      return this.#give([], (error as Error).message)
    }
  }

  async post(credentials: Credentials): Promise<string | null> {
    const { url, connections, retryMs } = this.#options
    const { now, delay, interrupted } = this.#world
    this.#session = new Session(url, credentials, Math.floor(now()))
    const Agent = url.startsWith('https:') ? HttpsAgent : HttpAgent
    const agent = new Agent({ keepAlive: true, maxSockets: connections })
    const settled = {
      accepted: (order: Order, outcome: 'created' | 'repeated') =>
        this.#tally.accept(order.invoice, outcome),
      failed: (order: Order, error: ErrorItem) => this.#failed(order.invoice, error),
    }
    const session = this.#session
    const all = Array.from(
      { length: connections },
      () =>
        new BulkConnection({ session, agent, source: this.#orders, retryMs, now, delay, settled }),
    )
    const runs = all.map((connection) => connection.run())
    const stop = (why: string): void => all.forEach((connection) => connection.stop(why))
    let stopped: string | null = null
    void interrupted.then((signal) => stop((stopped ??= `stopped by ${signal}`)))
    for (const run of runs) {
      run.catch((error: Error) => stop((stopped ??= error.message)))
    }
    await Promise.allSettled(runs)
    agent.destroy()
    if (stopped === null) return null
    return this.#give(
      all.flatMap((connection) => connection.unsettled()),
      stopped,
    )
  }

  /** Looks at the graph: at numbers that were taken already, and with `--wait` at everything. */
  async compare(): Promise<RunResult['graph']> {
    if (this.#session === null) return null
    const { now, delay } = this.#world
    const options = { session: this.#session, patienceMs: GRAPH_PATIENCE_MS, now, delay }
    const startMs = now()
    try {
      await this.#lookUpTaken({ ...options, patienceMs: 0 })
      if (!this.#options.wait) return null
      const comparison = await compareWithGraph(this.#tally.accepted, options)
      return { ...comparison, elapsedMs: now() - startMs }
    } catch (error) {
      this.graphProblem = (error as Error).message
      for (const { invoice, error: taken } of this.#tally.taken) this.#fail(invoice, taken)
      this.#tally.taken.length = 0
      return null
    }
  }

  /** A taken number with our total is an order of an earlier run whose key is forgotten by now. */
  async #lookUpTaken(options: Parameters<typeof compareWithGraph>[1]): Promise<void> {
    const { taken } = this.#tally
    if (taken.length === 0) return
    const totals = taken.map(({ invoice }) => orderTotal(invoice))
    const { differing } = await compareWithGraph(totals, options)
    const others = new Set(differing.map(({ order }) => order.orderNumber))
    for (const { invoice, error } of taken) {
      if (others.has(invoice.invoiceNumber)) this.#fail(invoice, error)
      else this.#tally.accept(invoice, 'repeated')
    }
    taken.length = 0
  }

  #failed(invoice: Invoice, error: ErrorItem): void {
    if (error.code === 'ALREADY_EXISTS') this.#tally.taken.push({ invoice, error })
    else this.#fail(invoice, error)
  }

  #fail(invoice: Invoice, error: ErrorItem): void {
    if (this.#tally.ordersFailed < FAILURES_SHOWN) {
      this.#world.tell(`order ${invoice.invoiceNumber} failed: ${error.code}: ${error.message}`)
    } else if (this.#tally.ordersFailed === FAILURES_SHOWN) {
      this.#world.tell(`more failures are in ${this.#rejects.path}`)
    }
    this.#tally.fail(invoice, error.code)
    this.#rejects.order(invoice, error)
  }

  /** The rows read and not settled of a run that stops: failed, so that the counts add up. */
  #give(unsettled: readonly Order[], why: string): string {
    const invoices = [...unsettled.map((order) => order.invoice), ...this.#orders.abandon()]
    const error = { code: 'NOT_SENT', message: 'the run ended first, or before the answer came' }
    for (const invoice of invoices) {
      this.#tally.fail(invoice, error.code)
      this.#rejects.order(invoice, error)
    }
    for (const { invoice, error: taken } of this.#tally.taken) this.#fail(invoice, taken)
    this.#tally.taken.length = 0
    return why
  }
}
