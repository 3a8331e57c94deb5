// Ids of operations: a client may use one again as soon as its operation is over or given up, while
// the answer that it gave up is still on its way here. So each operation has a number of its own
// behind the id, and what comes late finds nobody. Source: CONTRACT 1.4.1,
// https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md "Subscribe", "Complete".

/** A message as it is handed on; `over` is called when all that it led to is done. */
export interface Taken {
  readonly text: string
  readonly over: () => void
}

const WITH_NUMBER = /^\{"id":"(\d+)"/
const END = /^\{"id":"\d+","type":"(?:complete|error)"/

export class OperationIds {
  #last = 0
  /** Numbers of those that are under way for their client, by its ids. */
  readonly #numbers = new Map<string, string>()
  /** The client's ids, by number, until nothing more can come. */
  readonly #ids = new Map<string, string>()

  /** What a client says, by our numbers. `taken`: the id is in use. */
  incoming(text: string): Taken | { readonly taken: string } {
    const message = messageOf(text)
    if (message === null) return asItIs(text)
    const { id } = message
    const number = this.#numbers.get(id)
    if (message.type === 'complete') {
      this.#numbers.delete(id)
      // One that is over already: nobody is asked for.
      return asItIs(JSON.stringify({ ...message, id: number ?? '0' }))
    }
    if (number !== undefined) return { taken: id }
    const own = String(++this.#last)
    this.#numbers.set(id, own)
    this.#ids.set(own, id)
    const over = (): void => {
      this.#ids.delete(own)
      if (this.#numbers.get(id) === own) this.#numbers.delete(id)
    }
    return { text: JSON.stringify({ ...message, id: own }), over }
  }

  /** What a client is told, by its own ids. */
  outgoing(text: string): string {
    const number = WITH_NUMBER.exec(text)?.[1]
    const id = number === undefined ? undefined : this.#ids.get(number)
    if (number === undefined || id === undefined) return text
    if (END.test(text) && this.#numbers.get(id) === number) this.#numbers.delete(id)
    return `{"id":${JSON.stringify(id)}${text.slice('{"id":""'.length + number.length)}`
  }

  /** The client's id of an operation. */
  idOf(number: string): string {
    return this.#ids.get(number) ?? ''
  }
}

const asItIs = (text: string): Taken => ({ text, over: () => undefined })

/** null: it is none with an id, or wrong in a way that is told where it is handed on to. */
function messageOf(text: string): { readonly type: string; readonly id: string } | null {
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof message !== 'object' || message === null) return null
  const { type, id } = message as { readonly type?: unknown; readonly id?: unknown }
  const hasId = (type === 'subscribe' || type === 'complete') && typeof id === 'string' && id !== ''
  return hasId ? { ...message, type, id } : null
}
