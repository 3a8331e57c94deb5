// Answers that their clients take slowly: what a socket has no room for waits here, not in
// uWebSockets.js, which would keep it without a bound. As long as an answer waits the next request
// of its connection isn't served (uWebSockets.js ends a connection that sends one). Source:
// CONTRACT 0 "Slow readers".

import type { HttpResponse } from './uws.ts'

/** A body; `bare`: that of a HEAD, which is not sent, but counted. */
export interface AnswerBody {
  readonly payload: string | Uint8Array
  readonly bare: boolean
}

/** Begins the body of an answer whose head was written. True: the socket took all of it. */
export function beginBody(res: HttpResponse, { payload, bare }: AnswerBody): boolean {
  const [took, ended] = res.tryEnd(bare ? '' : payload, Buffer.byteLength(payload))
  if (ended || !took) return ended
  // Only that of a HEAD is taken and not at its end.
  res.endWithoutBody()
  return true
}

/** The rest of one answer. */
export class UnreadAnswer {
  readonly bytes: number
  readonly sinceMs: number
  /** When the socket last took some of it. */
  tookMs: number
  taken = 0
  private readonly res: HttpResponse
  private readonly body: Uint8Array
  private readonly bare: boolean

  constructor(res: HttpResponse, { payload, bare }: AnswerBody, nowMs: number) {
    this.res = res
    this.body = typeof payload === 'string' ? Buffer.from(payload) : payload
    this.bare = bare
    this.bytes = this.body.length
    this.sinceMs = nowMs
    this.tookMs = nowMs
  }

  /** Goes on whenever there is room; `ended` when all was taken. */
  follow(nowMs: () => number, ended: () => void): void {
    const { res, body, bare } = this
    res.onWritable((offset) => {
      const [took, isEnd] = res.tryEnd(bare ? '' : body.subarray(offset), body.length)
      this.tookMs = nowMs()
      this.taken = offset
      if (isEnd) ended()
      else if (took) {
        res.endWithoutBody()
        ended()
      }
      return took
    })
  }

  close(): void {
    this.res.close()
  }
}

/** All of them, the oldest first, and their bytes, which are bounded. */
export class UnreadAnswers {
  private readonly bytesMax: number
  private readonly waiting = new Set<UnreadAnswer>()
  bytes = 0

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax
  }

  /** Past the bound those that have waited longest are closed: who reads is served. */
  add(answer: UnreadAnswer): void {
    this.waiting.add(answer)
    this.bytes += answer.bytes
    for (const oldest of this.waiting) {
      if (this.bytes <= this.bytesMax) return
      // Its exchange hears of it, and takes it out.
      oldest.close()
      this.delete(oldest)
    }
  }

  delete(answer: UnreadAnswer): void {
    if (this.waiting.delete(answer)) this.bytes -= answer.bytes
  }
}
