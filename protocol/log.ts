// What a part of the system needs of a log. node/log/log.ts writes it; tests hand in a recorder.
// Fields first, as pino takes them.

export interface Log {
  debug(fields: object, text: string): void
  info(fields: object, text: string): void
  warn(fields: object, text: string): void
  error(fields: object, text: string): void
}
