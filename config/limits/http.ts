// Bounds of what comes in over HTTP and of what goes out: bytes, time, connections. They stand in
// one table, for each is a door that strangers try. Part of LIMITS. Source: CONTRACT 0.

const KiB = 1024
const MiB = 1024 * KiB

export const HTTP_LIMITS = {
  // Requests
  /** Requests of all connections under way at once; past it 429. */
  requestsInFlightMax: 20_000,
  /** Path and query. */
  urlCharsMax: 8 * KiB,
  /** Request line and headers together; uWebSockets.js answers 431 past it. */
  headersBytesMax: 32 * KiB,
  /** A caller's `X-Request-Id`. */
  requestIdCharsMax: 128,
  /** One body, unpacked. */
  bodyBytesMax: 10 * MiB,
  /** Bodies up to this are read together with others of their tick. */
  bodyTogetherBytesMax: 64 * KiB,
  /** A client that sends nothing of an announced body for this long is closed. */
  bodyIdleMs: 30_000,
  /** Below this mean rate a body is closed, once it has taken `bodyIdleMs`. */
  bodyBytesPerSecondMin: 240,
  /** A body that is not whole after this is closed, however it comes. */
  bodyMs: 300_000,
  /** Bytes of all bodies that are still arriving; past it a body gets 429. */
  bodiesBytesMax: 256 * MiB,
  /** Packed bodies that are unpacked at once, and those that wait for it; more get 429. */
  unpackingsMax: 2,
  unpackingsWaitingMax: 64,
  // The same before anybody knows who sends it: an operation without a token, or one whose token is
  // still being looked up. None of it is taken from what callers with a token have.
  strangerBodyBytesMax: 64 * KiB,
  strangerBodiesBytesMax: 16 * MiB,
  strangerBodyMs: 15_000,
  // Streams of lines
  /** One line. */
  bulkLineBytesMax: 10 * MiB,
  /** Bytes of a streamed body that wait for the handler before the socket is paused. */
  streamReadAheadBytesMax: 1 * MiB,
  /** The same of all streams: past it each is paused when it has `linePartFreeBytes`. */
  streamsReadAheadBytesMax: 64 * MiB,
  /**
   * Bytes of lines that are here in part, beyond so many of each: past it a stream ends with 429.
   */
  linePartFreeBytes: 64 * KiB,
  linePartsBytesMax: 32 * MiB,
  /** Answer lines are gathered up to this before they are written. */
  streamWriteBytes: 32 * KiB,
  // Rates
  /** Requests are counted in windows of this length. */
  rateWindowMs: 60_000,
  /** Callers, and addresses, that are counted; of more, those that began first are not. */
  rateWindowsMax: 20_000,
  // Answers
  /**
   * Answers that are given while requests are still being read from the sockets; the next ones wait
   * a moment, and a connection that has sent more behind such a one is closed: one that sends
   * thousands at once would keep all others waiting.
   */
  answersTogetherMax: 16,
  /** Answers without a body in a second, to requests of no operation (OPTIONS). */
  strayBareAnswersMax: 200,
  /** Bytes of answers that clients have not taken yet; past it the one that waits longest goes. */
  answersBytesMax: 128 * MiB,
  /** Below this mean rate a client that reads an answer is closed, after `bodyIdleMs`. */
  answerBytesPerSecondMin: 1 * KiB,
  /** Answers below are not worth compressing. */
  gzipBytesMin: 1 * KiB,
  /** Answers above are compressed on the thread pool. */
  gzipInlineBytesMax: 8 * KiB,
  /** Bytes of answers that are being compressed at once; further ones go as they are. */
  packingBytesMax: 8 * MiB,
  /** Files that a process keeps for other things than connections of its callers. */
  openFilesKept: 256,
} as const
