// Partitions of the twin's tables by the engine's own rules for a cell: the greater timestamp
// stays; of two equal ones what was deleted or expires, then the greater value; what was deleted
// shadows older and equal writes. Source: PROTOCOL 3.0; Cassandra 5,
// `db.rows.Cells.resolveRegular`.

export interface Cell {
  readonly stamp: number
  /** null: deleted. */
  readonly value: unknown
  /** Infinity: it stays. */
  readonly expiresAtMs: number
}

export interface PartitionRow {
  readonly key: readonly unknown[]
  readonly cells: Map<string, Cell>
}

/** Cells up to this timestamp are gone, of the rows that it covers. */
interface Deletion {
  readonly stamp: number
  readonly covers: (key: readonly unknown[]) => boolean
}

/** Of a row that was inserted: it is there, whatever its columns hold. */
export const MARKER = ''

export class Partition {
  readonly key: readonly unknown[]
  /** Of all rows alike; its key is empty. */
  readonly statics: PartitionRow = { key: [], cells: new Map() }
  readonly #rows = new Map<string, PartitionRow>()
  readonly #deletions: Deletion[] = []
  readonly #nowMs: () => number

  constructor(key: readonly unknown[], nowMs: () => number) {
    this.key = key
    this.#nowMs = nowMs
  }

  /** Rows of which something is there, in order. */
  rows(): PartitionRow[] {
    const living = [...this.#rows.values()].filter((row) => this.isThere(row))
    return living.toSorted((a, b) => compare(a.key, b.key))
  }

  row(key: readonly unknown[]): PartitionRow {
    const name = JSON.stringify(key)
    let row = this.#rows.get(name)
    if (row === undefined) this.#rows.set(name, (row = { key, cells: new Map() }))
    return row
  }

  isThere({ cells }: PartitionRow): boolean {
    return [...cells.values()].some((cell) => this.living(cell) !== null)
  }

  /** The cell where it is there: neither deleted nor expired. */
  living(cell: Cell | undefined): Cell | null {
    if (cell === undefined || cell.value === null || cell.expiresAtMs <= this.#nowMs()) return null
    return cell
  }

  put({ key, cells }: PartitionRow, column: string, cell: Cell): void {
    const isGone = this.#deletions.some(({ stamp, covers }) => stamp >= cell.stamp && covers(key))
    if (isGone) return
    const there = cells.get(column)
    if (there === undefined || wins(cell, there)) cells.set(column, cell)
  }

  remove(deletion: Deletion): void {
    this.#deletions.push(deletion)
    for (const { key, cells } of [this.statics, ...this.#rows.values()]) {
      if (!deletion.covers(key)) continue
      for (const [column, { stamp }] of cells) if (stamp <= deletion.stamp) cells.delete(column)
    }
  }
}

/** Whether the new one of two cells of one place is the one that stays. */
function wins(fresh: Cell, there: Cell): boolean {
  if (fresh.stamp !== there.stamp) return fresh.stamp > there.stamp
  const goes = ({ value, expiresAtMs }: Cell) => value === null || expiresAtMs !== Infinity
  if (goes(fresh) !== goes(there)) return goes(fresh)
  if (Buffer.isBuffer(fresh.value) && Buffer.isBuffer(there.value)) {
    return Buffer.compare(fresh.value, there.value) > 0
  }
  return String(fresh.value) > String(there.value)
}

/** The order of clustering columns. */
function compare(a: readonly unknown[], b: readonly unknown[]): number {
  for (const [i, own] of a.entries()) {
    const [one, other] = [own, b[i]] as [number, number]
    if (one !== other) return one < other ? -1 : 1
  }
  return 0
}
