// What a part of the system needs of a log. It stands between those that have something to tell and
// node/log.ts, which writes it; tests hand in a recorder. Fields first, as pino takes them.

export interface Log {
  debug(fields: object, text: string): void
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
  error(fields: object, text: string): void
}
