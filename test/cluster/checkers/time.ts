// K2, K3 and K7: operations take effect one after the other, in an order that agrees with time. By
// the offsets that clients were told (K2), without them by what reads of an order showed (K3, for a
// list that only grows its beginnings tell it all), and by what the graph showed to somebody who
// named a write (K7). Source: PROTOCOL 4.1.

import type { OperationHistory, Operation } from '../operation-history.ts'

export function checkTime(history: OperationHistory): string[] {
  return [...checkOffsets(history), ...checkReads(history), ...checkSessions(history)]
}

/** If A had returned before B was invoked, A stands before B; no two stand in one place. */
function checkOffsets({ operations }: OperationHistory): string[] {
  const found: string[] = []
  for (const [shard, placed] of groupBy(operations.filter(isPlaced), (one) => one.shard!)) {
    placed.sort((a, b) => a.offset! - b.offset!)
    let latest: Operation | null = null
    for (const [i, operation] of placed.entries()) {
      const before = placed[i - 1]
      if (before?.offset === operation.offset) {
        found.push(
          `K2: operations ${before.id} and ${operation.id} stand in one place, ` +
            `${shard}/${operation.offset}`,
        )
      }
      if (latest !== null && operation.returnedAt! < latest.invokedAt) {
        found.push(
          `K2: operation ${operation.id} had returned before ${latest.id} was invoked, and ` +
            `stands behind it: ${operation.offset} and ${latest.offset} of shard ${shard}`,
        )
      }
      if (latest === null || operation.invokedAt > latest.invokedAt) latest = operation
    }
  }
  return found
}

/** An answer to a repeat may carry the place of the first: only first ones have a place. */
function isPlaced({ op, outcome, offset }: Operation): boolean {
  const writes = op === 'create' || op === 'mark' || op === 'reject'
  return writes && outcome === 'ok' && offset !== null
}

function checkReads({ operations }: OperationHistory): string[] {
  const found: string[] = []
  for (const [, all] of groupBy(operations, ({ orderNumber }) => orderNumber)) {
    const reads = all.filter(({ op, shown }) => op === 'read' && shown !== null)
    reads.sort((a, b) => a.shown!.marks.length - b.shown!.marks.length)
    reads.forEach((read, i) => {
      const shorter = reads[i - 1]
      if (shorter) found.push(...checkBeginning(shorter, read))
    })
    const writes = all.filter(({ op, marks }) => (op === 'mark' || op === 'create') && marks.length)
    const byMark = new Map(writes.flatMap((one) => one.marks.map((mark) => [mark, one] as const)))
    for (const read of reads) found.push(...checkRead(read, writes, byMark))
  }
  return found
}

/** Of two reads the shorter is the beginning of the longer, and wasn't begun after it had ended. */
function checkBeginning(shorter: Operation, longer: Operation): string[] {
  const [a, b] = [shorter.shown!.marks, longer.shown!.marks]
  const at = a.findIndex((mark, i) => b[i] !== mark)
  if (at >= 0) {
    const others = `${a[at]!} where operation ${longer.id} was shown ${b[at] ?? 'nothing'}`
    return [`K3: operation ${shorter.id} was shown ${others}, in ${shorter.orderNumber}`]
  }
  if (b.length > a.length && longer.returnedAt! < shorter.invokedAt) {
    return [`K3: operation ${shorter.id} was shown less than ${longer.id}, which had ended before`]
  }
  return []
}

function checkRead(
  read: Operation,
  writes: readonly Operation[],
  byMark: ReadonlyMap<string, Operation>,
): string[] {
  const found: string[] = []
  const shown = new Set(read.shown!.marks)
  for (const write of writes) {
    const { id, marks, outcome, rejected, returnedAt } = write
    const isDone = outcome === 'ok' && !rejected && returnedAt! < read.invokedAt
    if (isDone && !shown.has(marks[0]!)) {
      found.push(`K3: operation ${read.id} was not shown ${marks[0]!} of ${id}, done before it`)
    }
  }
  for (const mark of shown) {
    const write = byMark.get(mark)
    if (write === undefined) found.push(`K3: operation ${read.id} was shown ${mark}, never sent`)
    else if (write.invokedAt > read.returnedAt!) {
      found.push(`K3: operation ${read.id} was shown ${mark} before it was sent (${write.id})`)
    }
  }
  return found
}

/** Who names a write sees it, and what stands before it in its order. */
function checkSessions({ operations }: OperationHistory): string[] {
  const found: string[] = []
  const writes = groupBy(
    operations.filter((one) => isPlaced(one) && !one.rejected),
    ({ pid }) => pid,
  )
  for (const request of operations) {
    if (request.op !== 'graph' || request.outcome !== 'ok' || request.rejected) continue
    const of = writes.get(request.pid) ?? []
    const named = of.find(({ token }) => token === request.token)
    if (named === undefined) continue
    const shown = new Set(request.shown?.marks ?? [])
    for (const { id, marks, offset } of of) {
      if (offset! > named.offset! || marks.every((mark) => shown.has(mark))) continue
      found.push(
        `K7: operation ${request.id} named offset ${named.offset} and was not shown ` +
          `${marks.join()} of ${id} at ${offset}`,
      )
    }
  }
  return found
}

export function groupBy<T, K>(values: readonly T[], keyOf: (value: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const value of values) {
    const key = keyOf(value)
    const group = groups.get(key)
    if (group) group.push(value)
    else groups.set(key, [value])
  }
  return groups
}
