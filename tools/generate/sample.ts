// Makes the sample that `npm start` loads into an empty store: about 300 invented orders of a
// kitchen and garden shop. A seed gives a file in the Online Retail layout, and that the orders, as
// `npm run ingest` would post them. `node tools/run.mjs tools/generate/sample.ts`

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { csvLine } from '../../cli/ingest/online-retail/csv.ts'
import { orderCreateBody } from '../../cli/ingest/online-retail/order.ts'
import { OnlineRetailReader } from '../../cli/ingest/online-retail/reader.ts'
import { COLUMNS } from '../../cli/ingest/online-retail/row.ts'

const SAMPLE = join(import.meta.dirname, '../../node/sample/orders.jsonl')

const ORDERS = 300
const SEED = 20_260_301
const FIRST_INVOICE = 700_101
const FIRST_DAY_MS = Date.UTC(2026, 0, 5)
const DAYS = 84

const MATERIALS = ['OAK', 'ENAMEL', 'LINEN', 'COPPER', 'STONEWARE', 'WILLOW', 'GLASS', 'FELT']
const THINGS: readonly (readonly [name: string, pence: number])[] = [
  ['SERVING BOARD', 1450],
  ['EGG CUP', 325],
  ['TEA TOWEL', 495],
  ['WATERING CAN', 1895],
  ['PLANT POT, SMALL', 425],
  ['PLANT POT, LARGE', 1195],
  ['BREAD BASKET', 975],
  ['CANDLE HOLDER', 585],
  ['NAPKIN RING', 165],
  ['6" PIE DISH', 795],
  ['STORAGE JAR ', 645],
  ['COASTER', 95],
  ['BIRD FEEDER', 1250],
  ['DOOR STOP', 895],
]
/** Often first: the shop sells mostly at home. */
const COUNTRIES = [
  ...Array.from({ length: 14 }, () => 'United Kingdom'),
  ...['EIRE', 'Germany', 'Germany', 'France', 'Netherlands', 'Sweden', 'USA', 'Channel Islands'],
]

interface Product {
  readonly code: string
  readonly name: string
  readonly pence: number
}

/** A seeded stream of numbers in [0, 1): mulberry32. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 0x1_0000_0000
  }
}

function catalogue(): Product[] {
  return MATERIALS.flatMap((material, m) =>
    THINGS.map(([thing, pence], t) => ({
      code: `${40_000 + m * 100 + t}${t % 5 === 0 ? 'BGW'[m % 3] : ''}`,
      name: `${material} ${thing}`,
      pence: pence + m * 15,
    })),
  )
}

function stamp(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}

class SampleShop {
  readonly #random: () => number
  readonly #products = catalogue()
  #text = csvLine(COLUMNS)
  #invoice = FIRST_INVOICE

  constructor(seed: number) {
    this.#random = randomFrom(seed)
  }

  text(): string {
    for (let i = 0; i < ORDERS; i++) {
      const ms = this.#time(i)
      this.#order(ms, i)
      if (i % 60 === 30) this.#creditNote(ms)
      if (i % 100 === 70) this.#stockCorrection(ms)
    }
    return this.#text
  }

  #below(n: number): number {
    return Math.floor(this.#random() * n)
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#below(list.length)]!
  }

  #time(i: number): number {
    const day = Math.floor((i * DAYS) / ORDERS)
    const minute = 8 * 60 + Math.floor(((i * 37) % 100) * 5.4)
    return FIRST_DAY_MS + day * 86_400_000 + minute * 60_000
  }

  #order(ms: number, i: number): void {
    const number = String(this.#invoice++)
    // One in seven has no customer, as a till sale has none.
    const customer = this.#below(7) === 0 ? '' : `${21_000 + this.#below(90)}.0`
    const country = this.#pick(COUNTRIES)
    const wholesale = this.#below(5) === 0
    const rows = wholesale ? 10 + this.#below(16) : 1 + this.#below(9)
    for (let row = 0; row < rows; row++) {
      const product = this.#pick(this.#products)
      const quantity = wholesale ? 12 * (1 + this.#below(12)) : 1 + this.#below(6)
      // A wholesale price has half pennies; now and then something is a gift.
      const gift = i % 90 === 45 && row === 0
      const pence = gift ? 0 : wholesale ? product.pence * 0.85 : product.pence
      this.#row([
        number,
        product.code,
        gift ? '' : product.name,
        String(quantity),
        stamp(ms),
        gift ? '0' : trimmed(pence),
        customer,
        country,
      ])
    }
  }

  #creditNote(ms: number): void {
    const product = this.#pick(this.#products)
    this.#row([
      `C${this.#invoice++}`,
      product.code,
      product.name,
      `-${1 + this.#below(3)}`,
      stamp(ms),
      trimmed(product.pence),
      '21007.0',
      'United Kingdom',
    ])
  }

  #stockCorrection(ms: number): void {
    const product = this.#pick(this.#products)
    const number = String(this.#invoice++)
    this.#row([number, product.code, 'damaged', '-7', stamp(ms), '0.0', '', 'United Kingdom'])
  }

  #row(fields: readonly string[]): void {
    this.#text += csvLine(fields)
  }
}

/** Pence as pounds with up to four decimals. */
function trimmed(pence: number): string {
  return String(Math.round(pence * 100) / 10_000)
}

/** The shop's file: the same bytes each time. Some of its rows are no part of an order. */
export function sampleCsv(): string {
  return new SampleShop(SEED).text()
}

/** The bodies of the `create` messages of such a file, one a line. */
export function sampleLines(csv: string): string {
  const reader = new OnlineRetailReader()
  const invoices = [reader.push(csv), reader.end()].flatMap((piece) => piece.invoices)
  return invoices.map((invoice) => `${JSON.stringify(orderCreateBody(invoice))}\n`).join('')
}

if (import.meta.main) writeFileSync(SAMPLE, sampleLines(sampleCsv()))
