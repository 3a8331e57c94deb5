// Events of one topic as something to read one after another: what `events()` in user code reads,
// of the same stream as sockets. Best effort, as they are: who reads too slowly misses some, and
// sees by the positions how many. Source: specification "Events", CONTRACT 1.10.

import { LIMITS } from '../../../config/limits.ts'
import { RequestError } from '../../../protocol/errors.ts'
import type { EventStream, EventTaker } from './event-stream.ts'
import type { PlatformEvent, Topic } from './topic.ts'

/** An event, and its number among all of the topic since the reader began, from 0. */
export interface ReadEvent extends PlatformEvent {
  readonly position: number
}

type Result = IteratorResult<ReadEvent, undefined>

const DONE: Result = { done: true, value: undefined }
/** There is one subscription of a reader. */
const ID = 'reader'

export interface EventReaderOptions {
  readonly stream: Pick<EventStream, 'subscribe' | 'unsubscribe'>
  readonly topic: Topic
  /** Asked for each event when it happens: what is not seen has no position either. */
  readonly maySee: (event: PlatformEvent) => boolean
}

export class EventReader implements EventTaker, AsyncIterableIterator<ReadEvent> {
  readonly #options: EventReaderOptions
  readonly #topics: ReadonlyMap<string, Topic>
  /** Happened, and not read yet. */
  readonly #waiting: ReadEvent[] = []
  /** Who waits for the next one, in their order. */
  readonly #readers: ((result: Result) => void)[] = []
  #position = 0
  #isEnded = false

  private constructor(options: EventReaderOptions) {
    this.#options = options
    this.#topics = new Map([[ID, options.topic]])
  }

  /** Resolves once all members know of it: what is committed from then on is read. */
  static async open(options: EventReaderOptions): Promise<EventReader> {
    const reader = new EventReader(options)
    await options.stream.subscribe(reader, reader.#topics)
    return reader
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Waits for the next event, for ever where none comes; TOO_BUSY where too many wait. */
  next(): Promise<Result> {
    const event = this.#waiting.shift()
    if (event !== undefined) return Promise.resolve({ done: false, value: event })
    if (this.#isEnded) return Promise.resolve(DONE)
    if (this.#readers.length >= LIMITS.live.eventsUnreadMax) {
      return Promise.reject(new RequestError('TOO_BUSY', 'too many reads wait for an event'))
    }
    return new Promise((resolve) => void this.#readers.push(resolve))
  }

  /** Ends it, for who waits too. */
  return(): Promise<Result> {
    if (!this.#isEnded) {
      this.#isEnded = true
      this.#options.stream.unsubscribe(this, this.#topics)
      this.#waiting.length = 0
      for (const reader of this.#readers.splice(0)) reader(DONE)
    }
    return Promise.resolve(DONE)
  }

  take(event: PlatformEvent): void {
    if (this.#isEnded || !this.#options.maySee(event)) return
    const read = { ...event, position: this.#position++ }
    const reader = this.#readers.shift()
    if (reader !== undefined) reader({ done: false, value: read })
    else if (this.#waiting.length < LIMITS.live.eventsUnreadMax) this.#waiting.push(read)
  }
}
