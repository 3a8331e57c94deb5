// Many questions to one node, some of them at a time: one after the other, most of the time goes by
// on the way.

const AT_ONCE = 8

/** Works on every item, so many at a time. Rejects with the first that fails. */
export async function atOnce<T>(
  items: Iterable<T>,
  work: (item: T) => Promise<void>,
  many = AT_ONCE,
): Promise<void> {
  const left = items[Symbol.iterator]()
  const lane = async (): Promise<void> => {
    for (let next = left.next(); !next.done; next = left.next()) await work(next.value)
  }
  await Promise.all(Array.from({ length: many }, lane))
}
