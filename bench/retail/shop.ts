// A shop's orders in an installation: the file of real invoices, by the command that merchants load
// it with, their states as a shop has them, and all that is there, read back page by page, for
// questions to be made of and answers to be held against.

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { bulkLoad } from '../load/bulk-load.ts'
import type { BenchSettings } from '../options.ts'
import { ROOT } from '../target/child.ts'
import type { Installation } from '../target/installation.ts'
import { standIn } from './stand-in.ts'

const LOAD_MS = 900_000
const PAGE = 1_000
const TEXT_CHARS_SHOWN = 2_000
/** The newest of so many orders is pending, one of so many is cancelled, the others confirmed. */
const PENDING_SHARE = 0.1
const CANCELLED_EACH = 40
/** Orders of the file are told from others by their channel (cli/ingest). */
const OF_SHOP = "channelKey == 'online'"

export interface ShopOrder {
  readonly orderId: string
  readonly customerNumber: string | null
  readonly orderState: string
  readonly orderTotal: number
  readonly createdAt: string
}

export interface ShopLine {
  readonly orderLineId: string
  readonly productNumber: string
  readonly description: string | null
  readonly quantity: number
  readonly orderLineTotal: number
}

export interface Shop {
  readonly orders: readonly ShopOrder[]
  readonly lines: readonly ShopLine[]
}

type FileSettings = Pick<BenchSettings, 'retailFile' | 'retailRows'>

/** Throws when a row was refused, or what was acknowledged isn't in the graph. */
export async function openShop(installation: Installation, settings: FileSettings): Promise<Shop> {
  const before = await installation.countOrders()
  const { created, there } = await ingest(installation, settings)
  await inGraph(installation, before + created)
  const loaded = await shopOrders(installation)
  if (loaded.length < created + there) {
    throw new Error(`the graph has ${loaded.length} of ${created + there} orders of the file`)
  }
  await setStates(installation, loaded)
  // A cancelled order and its lines have other totals than before.
  const orders = await shopOrders(installation)
  const lines = await all<ShopLine>(installation, {
    edge: 'orderLines',
    fields: ['orderLineId', 'productNumber', 'description', 'quantity', 'orderLineTotal'],
  })
  return { orders, lines }
}

function shopOrders(installation: Installation): Promise<readonly ShopOrder[]> {
  const fields = ['orderId', 'customerNumber', 'orderState', 'orderTotal', 'createdAt']
  return all<ShopOrder>(installation, { edge: 'orders', filter: OF_SHOP, fields })
}

/** Runs `npm run ingest` on the file, or on a stand-in. */
async function ingest(
  installation: Installation,
  { retailFile, retailRows }: FileSettings,
): Promise<{ readonly created: number; readonly there: number }> {
  const { credentials, url } = installation
  if (credentials === null) {
    throw new Error('loading the file needs --client-id and --client-secret, not --token')
  }
  const dir = mkdtempSync(join(tmpdir(), 'kontor-bench-retail-'))
  try {
    const file = retailFile === null ? join(dir, 'stand-in.csv') : resolve(retailFile)
    if (retailFile === null) writeFileSync(file, standIn(retailRows))
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [
        ...['cli/ingest.ts', '--file', file, '--url', url, '--json'],
        ...['--rejects', join(dir, 'rejects.csv'), '--client-id', credentials.clientId],
        ...['--client-secret', credentials.clientSecret],
      ],
      { cwd: ROOT, timeout: LOAD_MS },
    )
    const { ordersCreated, ordersRepeated } = JSON.parse(stdout) as Record<string, number>
    return { created: ordersCreated!, there: ordersRepeated! }
  } catch (error) {
    const { stderr = '' } = error as { readonly stderr?: string }
    throw new Error(`the file was not loaded: ${stderr.slice(-TEXT_CHARS_SHOWN)}`, { cause: error })
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

async function inGraph(installation: Installation, orders: number): Promise<void> {
  await installation.indexCaughtUp(LOAD_MS)
  const found = await installation.ordersReach(orders, LOAD_MS)
  if (found < orders) throw new Error(`the graph has ${found} of ${orders} orders`)
}

/** All of a set, over pages. */
async function all<T>(
  installation: Installation,
  {
    fields,
    ...set
  }: { readonly edge: string; readonly filter?: string; readonly fields: string[] },
): Promise<readonly T[]> {
  const found: T[] = []
  for (let after: string | undefined; ;) {
    const page = { ...set, limit: PAGE, cursor: 'last', ...(after && { after }), node: { fields } }
    const answer = await installation.post<Record<string, unknown>>('/resources/graph', [page])
    found.push(...(answer[set.edge] as T[]))
    after = answer[`${set.edge}Cursor`] as string | undefined
    if (after === undefined) return found
  }
}

/** Of an order by its place among all, oldest first. */
function stateOf(place: number, count: number): string {
  if (place >= count * (1 - PENDING_SHARE)) return 'pending'
  return place % CANCELLED_EACH === 0 ? 'cancelled' : 'confirmed'
}

/** Gives the orders their states; those that came with an earlier run have theirs. */
async function setStates(installation: Installation, orders: readonly ShopOrder[]): Promise<void> {
  const byAge = orders.toSorted((a, b) => (a.createdAt < b.createdAt ? -1 : 1))
  const lines = byAge.flatMap(({ orderId, orderState: before }, place) => {
    const orderState = stateOf(place, byAge.length)
    if (before === orderState) return []
    const commands = [{ type: 'setOrderState', orderState }]
    const line = { id: orderId, messages: [{ type: 'applyCommands', body: { commands } }] }
    return [Buffer.from(`${JSON.stringify(line)}\n`)]
  })
  if (lines.length === 0) return
  let at = 0
  const { acknowledged, failures } = await bulkLoad({
    to: await installation.destination(),
    connections: 2,
    warmUpSeconds: 0,
    seconds: LOAD_MS / 1_000,
    lines: lines.length,
    readings: { started: () => {}, ended: () => {} },
    line: () => lines[at++]!,
  })
  if (acknowledged.create !== lines.length) {
    const [what] = failures.keys()
    throw new Error(`${acknowledged.create} of ${lines.length} orders have their states: ${what}`)
  }
  await installation.indexCaughtUp(LOAD_MS)
}
