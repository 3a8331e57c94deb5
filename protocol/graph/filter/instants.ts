// Timestamps and dates as text: reading what callers write and making the canonical form that nodes
// hold, so that text order is time order. Source: CONTRACT 0 (ISO 8601 UTC with milliseconds; dates
// YYYY-MM-DD).

export const DAY_MS = 86_400_000

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/
const TIMESTAMP =
  /^(\d{4}-\d{2}-\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d{2}):?(\d{2}))$/i

/** Returns the milliseconds of a timestamp, further digits dropped, or null when it is none. */
export function instantMs(text: string): number | null {
  const match = TIMESTAMP.exec(text)
  if (!match) return null
  const [, day, hour, minute, second = '0', fraction = '0', sign, zoneHour, zoneMinute] = match
  const midnight = dateMs(day!)
  if (midnight === null) return null
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null
  if (Number(zoneHour ?? 0) > 23 || Number(zoneMinute ?? 0) > 59) return null
  const zone = (Number(zoneHour ?? 0) * 60 + Number(zoneMinute ?? 0)) * (sign === '-' ? -1 : 1)
  const minutes = Number(hour) * 60 + Number(minute) - zone
  const millis = Number(fraction.padEnd(3, '0').slice(0, 3))
  return midnight + minutes * 60_000 + Number(second) * 1_000 + millis
}

/** Milliseconds of a date's midnight (UTC), or null when there is no such day. */
export function dateMs(text: string): number | null {
  const match = DATE.exec(text)
  if (!match) return null
  const ms = Date.parse(`${text}T00:00:00.000Z`)
  // Some engines roll February 30 over into March.
  return Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 10) !== text ? null : ms
}

/** Canonical text of an instant, or null outside the years 0 to 9999. */
export function instantText(ms: number): string | null {
  if (!(Math.abs(ms) < 8.64e15)) return null
  const text = new Date(ms).toISOString()
  return text.length === 24 ? text : null
}
